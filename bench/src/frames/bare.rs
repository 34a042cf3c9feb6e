//! A pair of empty programs: one sends each frame unchanged, one counts and drops it. Their rate is the machine's limit for
//! XDP frames.

#[cfg(feature = "xdp")]
pub(super) use with_xdp::{Sink, measure};
#[cfg(not(feature = "xdp"))]
pub(super) use without_xdp::{Sink, measure};

#[cfg(feature = "xdp")]
mod with_xdp {
    use super::super::setup::{NICE, WORKERS};
    use crate::network::{DEVICE, End, Network};
    use narrows_sys::bpf::{Attached, Object, XdpMode};
    use narrows_sys::cpu::ThreadId;
    use narrows_sys::{Error, Result, cpu, device, thread};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    const BARE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bare.o"));
    /// The smallest frame, without FCS.
    const FRAME: [u8; 60] = [0; 60];
    /// Batch size, as narrows uses at its fastest.
    const BATCH: u32 = 64;
    /// Repetitions per call; a signal ends it.
    const TIMES: u32 = 1 << 30;
    const EINTR: i32 = 4;
    /// Delay before counting begins.
    const SETTLE: Duration = Duration::from_millis(500);

    fn load(name: &'static str) -> Result<Object> {
        Object::load(name, BARE, &0_u64.to_ne_bytes())
    }

    /// The dropping program on the receiving end. With it a veth pair accepts frames from XDP programs.
    pub(in super::super) struct Sink {
        object: Object,
        _attached: Attached,
    }

    impl Sink {
        pub(in super::super) fn attach(network: &Network) -> std::result::Result<Self, String> {
            network.inside(End::Server, || {
                let object = load("drop")?;
                let attached = object.attach(device::index(DEVICE)?, XdpMode::Native)?;
                Ok(Self { object, _attached: attached })
            })
        }

        /// Frames dropped so far.
        fn count(&self) -> Result<u64> {
            let of_cpus = self.object.read("count", &0_u32.to_ne_bytes())?;
            let number = |bytes: &Vec<u8>| bytes.as_slice().try_into().map_or(0, u64::from_ne_bytes);
            Ok(of_cpus.iter().map(number).sum())
        }
    }

    /// Frames per second from the sending to the dropping program.
    pub(in super::super) fn measure(network: &Network, seconds: u32) -> std::result::Result<f64, String> {
        let sink = Sink::attach(network)?;
        let pps = network.inside(End::Client, || race(&sink, Duration::from_secs(seconds.into())))?;
        if pps > 0.0 { Ok(pps) } else { Err("no frame of the empty programs arrived".to_owned()) }
    }

    /// Sends on each CPU, and reads the sink's counter twice.
    fn race(sink: &Sink, time: Duration) -> Result<f64> {
        thread::interruptible()?;
        let (index, cpus) = (device::index(DEVICE)?, cpu::allowed_cpus()?);
        let over = AtomicBool::new(false);
        let names: Vec<OnceLock<ThreadId>> = (0..WORKERS).map(|_| OnceLock::new()).collect();
        std::thread::scope(|scope| {
            let mut workers = Vec::new();
            for (name, cpu) in names.iter().zip(cpus.iter().cycle()) {
                let over = &over;
                workers.push((name, scope.spawn(move || work(index, *cpu, name, over))));
            }
            let counted = count(sink, time);
            over.store(true, Ordering::Relaxed);
            for (name, worker) in &workers {
                while !worker.is_finished() {
                    name.get().copied().into_iter().for_each(thread::interrupt);
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            for (_, worker) in workers {
                worker.join().map_err(|_| Error::new("run", "a worker", std::io::Error::other("it broke down")))??;
            }
            counted
        })
    }

    fn work(index: u32, cpu: u32, name: &OnceLock<ThreadId>, over: &AtomicBool) -> Result<()> {
        let _ = name.set(cpu::this_thread());
        let _ = thread::set_nice(NICE);
        cpu::pin(&[cpu])?;
        let object = load("send")?;
        while !over.load(Ordering::Relaxed) {
            match object.run_live(index, &FRAME, TIMES, BATCH) {
                Err(error) if error.errno() != Some(EINTR) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn count(sink: &Sink, time: Duration) -> Result<f64> {
        // The workers have priority over ordinary programs; this short-lived thread must read the counter in
        // time.
        let _ = thread::set_real_time();
        std::thread::sleep(SETTLE);
        let (at, before) = (Instant::now(), sink.count()?);
        std::thread::sleep(time);
        let (passed, after) = (at.elapsed(), sink.count()?);
        Ok(after.saturating_sub(before) as f64 / passed.as_secs_f64())
    }
}

#[cfg(not(feature = "xdp"))]
mod without_xdp {
    use crate::network::Network;

    /// Not available without XDP.
    pub(in super::super) enum Sink {}

    const WHY: &str = "this bench was built without the feature xdp";

    impl Sink {
        pub(in super::super) fn attach(_: &Network) -> Result<Self, String> {
            Err(WHY.to_owned())
        }
    }

    pub(in super::super) fn measure(_: &Network, _: u32) -> Result<f64, String> {
        Err(WHY.to_owned())
    }
}
