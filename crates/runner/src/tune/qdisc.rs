//! The root queueing discipline of a device, by route netlink. The way back is exact for disciplines without classes:
//! kind, handle and the options as the kernel dumped them; what could not be restored so is refused.
//!
//! Source: include/uapi/linux/rtnetlink.h (`struct tcmsg`), net/sched/sch_api.c.

use super::{Knob, TuneError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use narrows_sys::device;
use narrows_sys::netlink::{self, Builder, Family, Message, Socket, find};

/// The kinds that may be set, and that can be set back as their own dump says. Not `netem` (its tables are not dumped),
/// `red` (nor is its), nor any kind with classes.
const KINDS: &[&str] =
    &["bfifo", "cake", "codel", "fq", "fq_codel", "mq", "noqueue", "pfifo", "pfifo_fast", "pie", "sfq", "tbf"];

/// The word for whatever the kernel takes when nothing is set.
const DEFAULT: &str = "default";

const RTM_NEWQDISC: u16 = 36;
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

    /// `default`, or kind, handle and options: what `set_back` reads.
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
    fn wrap(&self, operation: &'static str) -> impl FnOnce(netlink::Error) -> TuneError {
        let device = self.device.to_owned();
        move |source| TuneError::Netlink { operation, device, source }
    }

    fn request(
        &self,
        operation: &'static str,
        kind: u16,
        flags: u16,
        payload: &[u8],
    ) -> Result<Vec<Message>, TuneError> {
        Socket::open(Family::Route)
            .and_then(|mut socket| socket.request(kind, flags, payload))
            .map_err(self.wrap(operation))
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

    fn delete_root(&self, index: u32) -> Result<(), TuneError> {
        self.request("remove the root qdisc of", RTM_DELQDISC, 0, &header(index, 0, TC_H_ROOT))?;
        Ok(())
    }

    fn make_root(&self, index: u32, kind: &str, handle: u32, options: &[u8]) -> Result<(), TuneError> {
        let mut payload = Builder::with_header(&header(index, handle, TC_H_ROOT));
        payload.text(TCA_KIND, kind);
        if !options.is_empty() {
            payload.bytes(TCA_OPTIONS, options);
        }
        let payload = payload.finish().map_err(self.wrap("describe the root qdisc of"))?;
        self.request("set the root qdisc of", RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &payload)?;
        Ok(())
    }
}

impl Knob for RootQdisc<'_> {
    fn check(&self) -> Result<(), TuneError> {
        if self.kind != DEFAULT && !KINDS.contains(&self.kind) {
            let what = self.kind.chars().take(32).collect::<String>().escape_default().to_string();
            let allowed = format!("{DEFAULT}, {}", KINDS.join(", "));
            return Err(TuneError::NotInTable { what: format!("a root qdisc `{what}`"), allowed });
        }
        if let Some(why) = self.obstacle(device::index(self.device)?)? {
            return Err(TuneError::NotRestorable { what: format!("the root qdisc of {}", self.device), why });
        }
        Ok(())
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
        if self.kind != DEFAULT {
            return self.make_root(index, self.kind, 0, &[]);
        }
        // The kernel's own choice has no handle, and cannot be removed.
        if self.root(index)?.is_some_and(|root| root.handle != 0) { self.delete_root(index) } else { Ok(()) }
    }

    fn set_back(&self, before: &str) -> Result<(), TuneError> {
        let index = device::index(self.device)?;
        // First away with what is there: a discipline of the same handle cannot be replaced by one of another kind.
        if self.root(index)?.is_some_and(|root| root.handle != 0) {
            self.delete_root(index)?;
        }
        if before == DEFAULT {
            return Ok(());
        }
        let bad = || TuneError::BadValue {
            what: format!("the root qdisc of {}", self.device),
            value: before.to_owned(),
            wanted: "`default`, or kind, handle and options".to_owned(),
        };
        let mut parts = before.split(' ');
        let (Some(kind), Some(handle), Some(options), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(bad());
        };
        let handle = u32::from_str_radix(handle, 16).map_err(|_| bad())?;
        self.make_root(index, kind, handle, &STANDARD.decode(options).map_err(|_| bad())?)
    }
}
