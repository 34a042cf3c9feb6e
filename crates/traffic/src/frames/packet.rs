//! Frames sent through a packet socket: works on every device, and is the slowest.

use super::device::Device;
use super::pace::Share;
use super::worker::{Crew, Outlet};
use narrows_model::load::frames::GeneratePlan;
use narrows_sys::packet_io::{BATCH, PacketSender};

struct Packets {
    socket: PacketSender,
    buffers: Vec<Vec<u8>>,
}

impl Outlet for Packets {
    fn send(&mut self, count: u64, write: impl Fn(u64, &mut [u8]) -> usize) -> Result<(u64, u64), narrows_sys::Error> {
        let count = usize::try_from(count).unwrap_or(BATCH).min(BATCH);
        let mut lengths = [0; BATCH];
        for (ahead, (buffer, length)) in (0..).zip(self.buffers.iter_mut().zip(&mut lengths)).take(count) {
            *length = write(ahead, buffer);
        }
        let frames = self.buffers.iter().zip(&lengths).take(count).map(|(buffer, length)| &buffer[..*length]);
        let sent = self.socket.send(frames)?;
        Ok((sent.taken as u64, sent.refused))
    }
}

pub(super) fn prepare(plan: &GeneratePlan, device: &Device, shares: &[Share]) -> Result<Crew, String> {
    let largest = plan.format.largest() as usize;
    let open = |_: &Share| {
        let socket = PacketSender::open(device.index).map_err(|error| error.to_string())?;
        Ok(Packets { socket, buffers: vec![vec![0; largest]; BATCH] })
    };
    let outlets = shares.iter().map(open).collect::<Result<Vec<_>, String>>()?;
    Ok(Crew::of(plan, shares, outlets))
}
