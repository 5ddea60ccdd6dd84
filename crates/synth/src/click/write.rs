//! A class's write: what its elements do to the packet, once.

use super::{Made, Printer, State, no};
use crate::action::{Action, Value};
use crate::field::{Base, Var, bit, ip};
use crate::rows::{IP, word};

impl Printer<'_> {
    /// The input of what writes a class's fields and sends its packets.
    pub(super) fn write(&mut self, action: &Action, port: u8, state: State) -> Made {
        let device = self.of.ports.get(usize::from(port)).cloned();
        let device = device.ok_or_else(|| no("packets leave by no device"))?;
        if action.head != 0 {
            return Err(no("bytes at a frame's front come or go"));
        }
        if action.cut.is_some() != (state == State::Checked) {
            return Err(no(
                "padding is cut without a check of the IP header, or kept behind one",
            ));
        }
        let (mut ethernet, mut bits, mut lower) = ([0_u8; 14], 0_u32, 0);
        for (var, write) in &action.writes {
            match (*var, write.value) {
                (of, Value::Field(from, 0)) if of == from => {}
                // A rewriter wrote it.
                (of, Value::Field(Var::Entry(..), 0)) if word(of).is_some() => {}
                (Var::Bits(Base::Frame, first, width), Value::Constant(value)) if first < 112 => {
                    bits += u32::from(width);
                    for n in 0..u32::from(width) {
                        let place = first + n;
                        let one = value >> (u32::from(width) - 1 - n) & 1;
                        if let Some(byte) = ethernet.get_mut(place as usize / 8) {
                            *byte |= (one as u8) << (7 - place % 8);
                        }
                    }
                }
                (of, Value::Field(from, less))
                    if of == from && of == ip(IP, bit::TTL) && less < 0 =>
                {
                    lower = -less;
                }
                (of, _) => return Err(no(format!("it writes {of}"))),
            }
        }
        let to = self.element("ToDevice", &device, &[]);
        let mut to = self.element("Queue", "", &[(0, to)]);
        let mac = |from: usize| {
            let bytes = ethernet.iter().skip(from).take(6);
            let words: Vec<String> = bytes.map(|b| format!("{b:02x}")).collect();
            words.join(":")
        };
        let typed = ethernet
            .get(12..)
            .map_or(0, |t| t.iter().fold(0, |n, b| n << 8 | u64::from(*b)));
        // The type of checked packets is IP's, or it is not known.
        to = match (bits, state) {
            (0, State::Checked) => self.element("Unstrip", "14", &[(0, to)]),
            (0, _) => to,
            (112, State::Checked) => {
                let config = format!("{typed:#06x}, {}, {}", mac(6), mac(0));
                self.element("EtherEncap", &config, &[(0, to)])
            }
            (96, State::Checked) => {
                let config = format!("{}, {}", mac(6), mac(0));
                let rewrite = self.element("EtherRewrite", &config, &[(0, to)]);
                self.element("Unstrip", "14", &[(0, rewrite)])
            }
            (96, _) => {
                let config = format!("{}, {}", mac(6), mac(0));
                self.element("EtherRewrite", &config, &[(0, to)])
            }
            _ => return Err(no("a part of Ethernet's header is written")),
        };
        for _ in 0..lower {
            to = self.element("DecIPTTL", "", &[(0, to)]);
        }
        match (lower > 0, state) {
            (true, State::Frame) => Ok(self.element("MarkIPHeader", "14", &[(0, to)])),
            _ => Ok(to),
        }
    }
}
