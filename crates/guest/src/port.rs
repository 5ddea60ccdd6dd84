//! preload/port.h, mirrored: what the host and a guest's preload share.

/// `MR_GUEST_BURST`: the most packets at once.
pub const BURST: usize = 1024;
/// `MR_GUEST_SENT`: bytes of the ring of packets that leave.
pub const SENT: usize = 0x80000;
/// `MR_GUEST_ON`.
pub const ON: u16 = 0;
/// `MR_GUEST_DROP`.
pub const DROP: u16 = 1;
/// `MR_GUEST_KEEP`.
pub const KEEP: u16 = 2;
/// `MR_GUEST_OUT`.
pub const OUT: u16 = 3;

/// `struct mr_guest_packet`: what the chain gives is what the guest gets.
pub use millrace_dataplane::worker::foreign::Given as Packet;

/// `struct mr_guest_port`. It lies in the guest's slot, so that what is read from it may be anything.
#[repr(C)]
pub struct Port {
    /// packets of this burst
    pub count: u32,
    /// the first that has not been handed out
    pub next: u32,
    /// no more will come
    pub ended: u32,
    /// a signal whose handler is to be called
    pub signal: u32,
    /// its handler
    pub handler: u64,
    /// whether it takes three arguments
    pub with_info: u32,
    /// whether the guest has asked for packets
    pub begun: u32,
    /// whether the guest polls, and says what becomes of each packet
    pub polls: u32,
    /// packets that it holds
    pub kept: u32,
    /// the burst's number
    pub turn: u32,
    /// for each port, how far its packets have been handed out
    pub cursor: [u32; 2],
    /// mbufs of packets that it has
    pub held: u32,
    /// FS base of the thread that the worker runs
    pub running: u64,
    /// the packets
    pub packets: [Packet; BURST],
    /// what the preload has written to `sent`
    pub head: u32,
    /// what the host has read of it
    pub tail: u32,
    /// nothing
    pub unused: u64,
    /// packets that leave and are none of the burst's: records in a ring
    pub sent: [u8; SENT],
}

/// `struct mr_guest_sent`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    /// bytes that follow
    pub length: u32,
    /// where it leaves
    pub port: u16,
    /// whether it leaves behind what leaves of the burst there
    pub after: u16,
    /// nothing
    pub unused: u64,
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// The header is compiled, and every size and offset is compared.
    #[test]
    fn the_mirror_is_the_header() {
        let facts = [
            ("sizeof(struct mr_guest_packet)", size_of::<Packet>()),
            ("sizeof(struct mr_guest_port)", size_of::<Port>()),
            (
                "offsetof(struct mr_guest_packet, data)",
                offset_of!(Packet, data),
            ),
            (
                "offsetof(struct mr_guest_packet, time)",
                offset_of!(Packet, time),
            ),
            (
                "offsetof(struct mr_guest_packet, length)",
                offset_of!(Packet, length),
            ),
            (
                "offsetof(struct mr_guest_packet, wire)",
                offset_of!(Packet, wire),
            ),
            (
                "offsetof(struct mr_guest_packet, port)",
                offset_of!(Packet, port),
            ),
            (
                "offsetof(struct mr_guest_packet, fate)",
                offset_of!(Packet, fate),
            ),
            (
                "offsetof(struct mr_guest_port, count)",
                offset_of!(Port, count),
            ),
            (
                "offsetof(struct mr_guest_port, next)",
                offset_of!(Port, next),
            ),
            (
                "offsetof(struct mr_guest_port, ended)",
                offset_of!(Port, ended),
            ),
            (
                "offsetof(struct mr_guest_port, signal)",
                offset_of!(Port, signal),
            ),
            (
                "offsetof(struct mr_guest_port, handler)",
                offset_of!(Port, handler),
            ),
            (
                "offsetof(struct mr_guest_port, with_info)",
                offset_of!(Port, with_info),
            ),
            (
                "offsetof(struct mr_guest_port, begun)",
                offset_of!(Port, begun),
            ),
            (
                "offsetof(struct mr_guest_packet, room)",
                offset_of!(Packet, room),
            ),
            (
                "offsetof(struct mr_guest_port, polls)",
                offset_of!(Port, polls),
            ),
            (
                "offsetof(struct mr_guest_port, kept)",
                offset_of!(Port, kept),
            ),
            (
                "offsetof(struct mr_guest_port, turn)",
                offset_of!(Port, turn),
            ),
            (
                "offsetof(struct mr_guest_port, cursor)",
                offset_of!(Port, cursor),
            ),
            (
                "offsetof(struct mr_guest_port, held)",
                offset_of!(Port, held),
            ),
            (
                "offsetof(struct mr_guest_port, running)",
                offset_of!(Port, running),
            ),
            (
                "offsetof(struct mr_guest_port, packet)",
                offset_of!(Port, packets),
            ),
            (
                "offsetof(struct mr_guest_port, head)",
                offset_of!(Port, head),
            ),
            (
                "offsetof(struct mr_guest_port, tail)",
                offset_of!(Port, tail),
            ),
            (
                "offsetof(struct mr_guest_port, sent)",
                offset_of!(Port, sent),
            ),
            ("sizeof(struct mr_guest_sent)", size_of::<Header>()),
            (
                "offsetof(struct mr_guest_sent, after)",
                offset_of!(Header, after),
            ),
            ("MR_GUEST_SENT", SENT),
            ("MR_GUEST_BURST", BURST),
            ("MR_GUEST_ON", ON as usize),
            ("MR_GUEST_DROP", DROP as usize),
            ("MR_GUEST_KEEP", KEEP as usize),
            ("MR_GUEST_OUT", OUT as usize),
        ];
        let mut text = String::from("#include <stddef.h>\n#include \"port.h\"\n");
        for (what, value) in facts {
            text.push_str(&format!("_Static_assert({what} == {value}, \"{what}\");\n"));
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mirror.c");
        std::fs::write(&file, text).unwrap();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/preload");
        let status = std::process::Command::new("cc")
            .args(["-std=gnu11", "-fsyntax-only", "-I", folder])
            .arg(&file)
            .status()
            .unwrap();
        assert!(status.success());
    }
}
