//! Fields of a packet as C.

use super::{Emitter, Known};
use crate::field::{Base, Var};

impl Emitter<'_> {
    /// The value of a field, in host order.
    pub(super) fn read(&mut self, var: Var, known: Known, depth: usize) -> String {
        match var {
            Var::Bits(Base::Frame, bit, width) => {
                if bit >= 112
                    && let Some(at) = Self::header(known, bit, width)
                {
                    self.lead_to_header(at, known, depth);
                    return header(bit - u32::from(at) * 8);
                }
                if known.frame >= var.end() {
                    return frame(bit, width);
                }
                // No pointer leads to all of its bytes yet. By the length of the IP header some more are there; and of a field that is asked for
                // there is at least a part.
                let whole = match bit / 8 >= known.frame {
                    true => var.end(),
                    false => known.within().min(var.end()),
                };
                if whole <= known.frame {
                    return some("frame", bit, width, known.frame);
                }
                self.locals.insert("*longer".into(), "__u8");
                self.locals.insert("*frame".into(), "__u8");
                self.say(depth, &format!("longer = packet_bytes(p, 0, {whole});"));
                self.say(depth, "if (!longer)");
                self.say(depth + 1, "return DROP;");
                self.say(depth, "frame = longer;");
                match whole < var.end() {
                    true => some("frame", bit, width, whole),
                    false => frame(bit, width),
                }
            }
            Var::Bits(Base::Upper(_), bit, width) => match known.upper < var.end() {
                true => some("upper", bit, width, known.upper),
                false => upper(bit, width),
            },
            Var::Listed(..) => self.ask(var, known, depth),
            _ => "p->port".into(),
        }
    }
}

/// A field of the IP header by its first bit.
fn header(bit: u32) -> String {
    match bit {
        0 => "ip->version_ihl >> 4",
        4 => "ip->version_ihl & 15",
        8 => "ip->tos >> 2",
        14 => "ip->tos & 3",
        16 => "ntohs(ip->length)",
        32 => "ntohs(ip->id)",
        48 => "ntohs(ip->fragment) >> 15",
        49 => "ntohs(ip->fragment) >> 14 & 1",
        50 => "ntohs(ip->fragment) >> 13 & 1",
        51 => "ntohs(ip->fragment) & 0x1fff",
        64 => "ip->ttl",
        72 => "ip->protocol",
        80 => "ntohs(ip->checksum)",
        96 => "ntohl(ip->src)",
        _ => "ntohl(ip->dst)",
    }
    .into()
}

/// A field of which the packet has only the first bytes: what is tested of it lies in these.
fn some(base: &str, bit: u32, width: u8, bytes: u32) -> String {
    let (first, end) = (bit / 8, (bit + u32::from(width)).div_ceil(8));
    let parts: Vec<String> = (first..end.min(bytes))
        .map(|at| match 8 * (end - 1 - at) {
            0 => format!("{base}[{at}]"),
            shift => format!("(__u32){base}[{at}] << {shift}"),
        })
        .collect();
    debug_assert!(
        !parts.is_empty(),
        "byte {first} of {base} is read, of which {bytes} are known"
    );
    match parts.is_empty() {
        true => "0".into(),
        false => parts.join(" | "),
    }
}

fn frame(bit: u32, width: u8) -> String {
    match (bit, width) {
        (0, _) => "frame[0] >> 1".into(),
        (7, _) => "frame[0] & 1".into(),
        (8, _) => "(__u64)frame[1] << 32 | ntohl(load32(frame + 2))".into(),
        (48, 48) => "(__u64)ntohs(load16(frame + 6)) << 32 | ntohl(load32(frame + 8))".into(),
        (bit, 16) => format!("ntohs(load16(frame + {}))", bit / 8),
        // Parts of an IP header that the frame does not have all of.
        (bit, 32) => format!("ntohl(load32(frame + {}))", bit / 8),
        (bit, width) => narrow("frame", bit, width),
    }
}

fn upper(bit: u32, width: u8) -> String {
    match width {
        16 => match bit / 8 {
            0 => "ntohs(load16(upper))".into(),
            at => format!("ntohs(load16(upper + {at}))"),
        },
        _ => narrow("upper", bit, width),
    }
}

/// Fewer than 16 bits, which may lie over two bytes.
fn narrow(base: &str, bit: u32, width: u8) -> String {
    let last = bit + u32::from(width) - 1;
    let mask = (1_u32 << width) - 1;
    if bit / 8 == last / 8 {
        let shift = 7 - last % 8;
        return match (shift, width) {
            (0, 8) => format!("{base}[{}]", bit / 8),
            (0, _) => format!("{base}[{}] & {mask:#x}", bit / 8),
            (shift, _) if shift + u32::from(width) == 8 => {
                format!("{base}[{}] >> {shift}", bit / 8)
            }
            (shift, _) => format!("{base}[{}] >> {shift} & {mask:#x}", bit / 8),
        };
    }
    let shift = 15 - (last - bit / 8 * 8);
    format!("ntohs(load16({base} + {})) >> {shift} & {mask:#x}", bit / 8)
}
