//! The root queueing discipline of a device, by route netlink. The roll-back is exact for disciplines without classes:
//! kind, handle and the options as the kernel dumped them; what could not be restored so is refused.
//!
//! Source: include/uapi/linux/rtnetlink.h (`struct tcmsg`), net/sched/sch_api.c.

use super::error::TuneError;
use super::knob::{Knob, not_in_table};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use narrows_sys::device;
use narrows_sys::netlink::{self, Builder, Family, Message, Socket, find};

/// The kinds that may be set, and that can be restored from their own dump. Not `netem` (its tables are not dumped),
/// not `red` (nor is its table), and no kind with classes.
pub(super) const KINDS: &[&str] =
    &["bfifo", "cake", "codel", "fq", "fq_codel", "mq", "noqueue", "pfifo", "pfifo_fast", "pie", "sfq", "tbf"];

/// The word for whatever the kernel takes when nothing is set.
const DEFAULT: &str = "default";

const RTM_NEWQDISC: u16 = 36;
const ENOENT: i32 = 2;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
const RTM_GETTFILTER: u16 = 46;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TC_H_ROOT: u32 = 0xFFFF_FFFF;
/// Bytes of `struct tcmsg`: family, padding, index, handle, parent, info.
const TCMSG: usize = 20;

pub(super) struct RootQdisc<'a> {
    pub(super) device: &'a str,
    pub(super) kind: &'a str,
}

/// One discipline as the kernel dumped it.
struct Dumped {
    handle: u32,
    parent: u32,
    kind: String,
    options: Vec<u8>,
}

impl Dumped {
    fn read(message: &Message, index: u32) -> Option<Self> {
        if netlink::u32_at(&message.payload, 4)? != index {
            return None;
        }
        let attributes = message.payload.get(TCMSG..)?;
        Some(Self {
            handle: netlink::u32_at(&message.payload, 8)?,
            parent: netlink::u32_at(&message.payload, 12)?,
            kind: find(attributes, TCA_KIND)?.text()?,
            options: find(attributes, TCA_OPTIONS).map(|options| options.payload.to_vec()).unwrap_or_default(),
        })
    }

    /// `default`, or kind, handle and options: what `write` reads.
    fn note(&self) -> String {
        if self.handle == 0 {
            DEFAULT.to_owned()
        } else {
            format!("{} {:x} {}", self.kind, self.handle, STANDARD.encode(&self.options))
        }
    }
}

fn header(index: u32, handle: u32, parent: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    for field in [index, handle, parent, 0] {
        bytes.extend_from_slice(&field.to_ne_bytes());
    }
    bytes
}

impl RootQdisc<'_> {
    fn failed(&self, operation: &'static str, source: netlink::Error) -> TuneError {
        TuneError::Netlink { operation, device: self.device.to_owned(), source }
    }

    fn request(&self, operation: &'static str, kind: u16, flags: u16, body: &[u8]) -> Result<Vec<Message>, TuneError> {
        let answer = Socket::open(Family::Route).and_then(|mut socket| socket.request(kind, flags, body));
        answer.map_err(|source| match source {
            // The kernel says no more than that it does not find it.
            netlink::Error::Refused { family, kind, errno: errno @ ENOENT, text: None } if kind == RTM_NEWQDISC => {
                let text = Some(format!("this kernel has no {}", self.kind));
                self.failed(operation, netlink::Error::Refused { family, kind, errno, text })
            }
            source => self.failed(operation, source),
        })
    }

    fn dump(&self, index: u32) -> Result<Vec<Dumped>, TuneError> {
        let messages = self.request("read the qdiscs of", RTM_GETQDISC, NLM_F_DUMP, &header(index, 0, 0))?;
        Ok(messages.iter().filter_map(|message| Dumped::read(message, index)).collect())
    }

    fn root(&self, index: u32) -> Result<Option<Dumped>, TuneError> {
        Ok(self.dump(index)?.into_iter().find(|qdisc| qdisc.parent == TC_H_ROOT))
    }

    /// Why the root that is there could not be restored, if so.
    fn obstacle(&self, index: u32) -> Result<Option<String>, TuneError> {
        let all = self.dump(index)?;
        let Some(root) = all.iter().find(|qdisc| qdisc.parent == TC_H_ROOT) else { return Ok(None) };
        if root.handle != 0 && !KINDS.contains(&root.kind.as_str()) {
            return Ok(Some(format!("it is of kind `{}`, which may have classes or tables of its own", root.kind)));
        }
        let below = |qdisc: &&Dumped| qdisc.handle != 0 && qdisc.parent >> 16 == root.handle >> 16;
        if let Some(child) = all.iter().find(below) {
            return Ok(Some(format!("a qdisc of kind `{}` was put below it", child.kind)));
        }
        let filters =
            self.request("read the filters of", RTM_GETTFILTER, NLM_F_DUMP, &header(index, 0, root.handle))?;
        let own = |message: &&Message| netlink::u32_at(&message.payload, 4) == Some(index) && root.handle != 0;
        if filters.iter().any(|message| own(&message)) {
            return Ok(Some("it has filters".to_owned()));
        }
        Ok(None)
    }

    /// Does nothing where the root is the kernel's own choice, which has no handle and cannot be removed.
    fn delete_root(&self, index: u32) -> Result<(), TuneError> {
        if self.root(index)?.is_some_and(|root| root.handle != 0) {
            self.request("remove the root qdisc of", RTM_DELQDISC, 0, &header(index, 0, TC_H_ROOT))?;
        }
        Ok(())
    }

    fn make_root(&self, index: u32, kind: &str, handle: u32, options: &[u8]) -> Result<(), TuneError> {
        let mut payload = Builder::with_header(&header(index, handle, TC_H_ROOT));
        payload.text(TCA_KIND, kind);
        if !options.is_empty() {
            payload.bytes(TCA_OPTIONS, options);
        }
        let payload = payload.finish().map_err(|source| self.failed("describe the root qdisc of", source))?;
        self.request("set the root qdisc of", RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &payload)?;
        Ok(())
    }
}

impl Knob for RootQdisc<'_> {
    fn what(&self) -> String {
        format!("the root qdisc of {}", self.device)
    }

    fn target(&self) -> String {
        self.kind.to_owned()
    }

    fn check(&self) -> Result<(), TuneError> {
        if self.kind != DEFAULT && !KINDS.contains(&self.kind) {
            return Err(not_in_table("a root qdisc", self.kind, [DEFAULT].into_iter().chain(KINDS.iter().copied())));
        }
        match self.obstacle(device::index(self.device)?)? {
            Some(why) => Err(TuneError::NotRestorable(self.what(), why)),
            None => Ok(()),
        }
    }

    fn current(&self) -> Result<String, TuneError> {
        let root = self.root(device::index(self.device)?)?;
        Ok(root.map_or_else(|| DEFAULT.to_owned(), |root| root.note()))
    }

    fn holds(&self) -> Result<bool, TuneError> {
        let root = self.root(device::index(self.device)?)?.filter(|root| root.handle != 0);
        Ok(root.map_or(self.kind == DEFAULT, |root| root.kind == self.kind && root.options.is_empty()))
    }

    fn set(&self) -> Result<(), TuneError> {
        let index = device::index(self.device)?;
        if self.kind == DEFAULT { self.delete_root(index) } else { self.make_root(index, self.kind, 0, &[]) }
    }

    fn write(&self, note: &str) -> Result<(), TuneError> {
        let index = device::index(self.device)?;
        // First away with what is there: a discipline of the same handle cannot be replaced by one of another kind.
        self.delete_root(index)?;
        if note == DEFAULT {
            return Ok(());
        }
        let parsed = || match *note.split(' ').collect::<Vec<_>>() {
            [kind, handle, options] => {
                Some((kind, u32::from_str_radix(handle, 16).ok()?, STANDARD.decode(options).ok()?))
            }
            _ => None,
        };
        let (kind, handle, options) =
            parsed().ok_or_else(|| self.bad(note, "`default`, or kind, handle and options"))?;
        self.make_root(index, kind, handle, &options)
    }
}
