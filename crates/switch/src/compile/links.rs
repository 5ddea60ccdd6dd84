//! The first table: what a switch reads of a frame, and where it leads.

use millrace_synth::diagram::{Id, Node};
use millrace_synth::field::{Base, Var, bit, ip};
use millrace_synth::rows::{FROM, PROTOCOL, TO, var, word};
use millrace_wire::ethernet;

use super::{To, Work};
use crate::Error;
use crate::flatten::{flatten, of_ethernet, packet_field};
use crate::openflow::{Field, Match};
use crate::outcome::{IP, SERVER};
use crate::project::Case;

/// The longest frame of an Ethernet link with 1,500 bytes of IP.
const MTU: u64 = 1500;

impl Work<'_> {
    fn known_ip(&self, port: u8) -> Vec<(Var, u64, u64)> {
        let assume = self.request.assume;
        let most = if assume.mtu { MTU } else { 65_535 };
        let long = if assume.mtu {
            MTU + u64::from(IP)
        } else {
            65_535
        };
        let mut known = vec![
            (Var::Port, u64::from(port), u64::from(port)),
            (Var::Bits(Base::Frame, 96, 16), 0x0800, 0x0800),
            (Var::Length, 34, long),
            (ip(IP, bit::LENGTH), 20, most),
            (ip(IP, bit::IHL), 5, if assume.options { 5 } else { 15 }),
        ];
        if assume.headers {
            known.extend([
                (ip(IP, 0), 4, 4),
                (Var::Checked(IP, false), 1, 1),
                (Var::Checked(IP, true), 1, 1),
            ]);
        }
        known
    }

    /// Lines of the first table for one device, the first that fits counts.
    pub fn device(&mut self, port: u8) -> Result<Vec<(Vec<Match>, To)>, Error> {
        let came = u64::from(port);
        let frame = |low, high, least| {
            vec![
                (Var::Port, came, came),
                (kind(), low, high),
                (Var::Length, least, 65_535),
            ]
        };
        let mut lines = Vec::new();
        // Behind a tag the switch reads the type of what is tagged.
        let tagged = [ethernet::VLAN, ethernet::SERVICE_VLAN].map(u64::from);
        let mut all = Vec::new();
        for kind in tagged {
            all.push(self.link(port, &frame(kind, kind, 18), false)?);
        }
        let tagged = self.projection.all(&all)?;
        self.lines(&[Match::exact(Field::Tagged, 1)], tagged, false, &mut lines)?;
        self.ip(port, &mut lines)?;
        // Types that the chain asks for, one by one, and all others.
        let (mut single, mut others) = (Vec::new(), Vec::new());
        for (low, high) in self.intervals(kind(), &[0x600, 0x800, 0x801]) {
            match (low, high) {
                (0x800, _) => {}
                _ if high < 0x600 => {
                    // IEEE 802.3: a length.
                    single.push((0x05ff, self.link(port, &frame(low, high, 14), false)?));
                }
                _ if low == high => {
                    single.push((low, self.link(port, &frame(low, low, 14), false)?));
                }
                _ => others.push(self.link(port, &frame(low, high, 14), false)?),
            }
        }
        let lengths: Vec<Id> = single
            .iter()
            .filter(|s| s.0 == 0x05ff)
            .map(|s| s.1)
            .collect();
        single.retain(|s| s.0 != 0x05ff);
        if !lengths.is_empty() {
            single.push((0x05ff, self.projection.all(&lengths)?));
        }
        let rest = self.projection.all(&others)?;
        for (value, to) in single.into_iter().filter(|s| s.1 != rest) {
            self.lines(
                &[Match::exact(Field::EthType, value)],
                to,
                false,
                &mut lines,
            )?;
        }
        self.lines(&[], rest, false, &mut lines)?;
        Ok(lines)
    }

    /// Lines for frames of IP.
    fn ip(&mut self, port: u8, lines: &mut Vec<(Vec<Match>, To)>) -> Result<(), Error> {
        let ethernet = Match::exact(Field::EthType, 0x0800);
        let known = self.known_ip(port);
        let ttl = self.request.switch.ttl;
        let sees = move |ports: bool| {
            move |v: Var| {
                let word = word(v);
                of_ethernet(v)
                    || word.is_some_and(|w| ports || !matches!(w, TO | FROM))
                    || packet_field(v).is_some_and(|f| ttl || f != Field::Ttl)
            }
        };
        let (mut kids, mut unread) = (Vec::new(), Vec::new());
        for (low, high) in self.intervals(var(PROTOCOL), &[6, 7, 17, 18]) {
            let least = match low {
                6 => 20,
                17 => 8,
                _ => 0,
            };
            let mut known = known.clone();
            known.push((var(PROTOCOL), low, high));
            let protocol = if low == high { low } else { 256 };
            let mut case = Case {
                known: &known,
                sees: &sees(false),
                protocol,
                has_ip: true,
                padding: self.request.assume.padding,
                port,
            };
            let mut made = self.projection.case(&case)?;
            if least > 0 {
                // Ports that are not both zero were read: the header is whole, and begins with this packet.
                let mut whole = known.clone();
                for one in &mut whole {
                    if one.0 == Var::Length {
                        one.1 += least;
                    }
                }
                whole.extend([
                    (ip(IP, bit::OFFSET), 0, 0),
                    (Var::Room(IP, true), least, 65_535),
                    (Var::Room(IP, false), least, 65_535),
                ]);
                let seen = sees(true);
                case.known = &whole;
                case.sees = &seen;
                let read = self.projection.case(&case)?;
                if read != made {
                    unread.push((low, made));
                    made = read;
                }
            }
            kids.push((low, made));
        }
        let main = self.projection.store.select(var(PROTOCOL), kids)?;
        // A header that the switch cannot read has zeros in its place, so it has protocol 0.
        let zero = |fields: &[Field]| {
            let all = fields.iter().map(|f| Match::exact(*f, 0));
            std::iter::once(ethernet).chain(all).collect::<Vec<_>>()
        };
        let unreadable = self.link(
            port,
            &[
                (Var::Port, u64::from(port), u64::from(port)),
                (kind(), 0x0800, 0x0800),
                (Var::Length, 14, 65_535),
            ],
            true,
        )?;
        if unreadable != main {
            // Open vSwitch takes protocol 0 for no header at all, and writes none (`commit_set_nw_action`).
            self.lines(&zero(&[Field::IpProto]), unreadable, true, lines)?;
        }
        for (protocol, to) in unread {
            let mut all = zero(&[Field::PortSrc, Field::PortDst]);
            all.insert(1, Match::exact(Field::IpProto, protocol));
            self.lines(&all, to, true, lines)?;
        }
        self.lines(&[ethernet], main, false, lines)
    }

    /// Frames of which nothing but Ethernet's addresses is seen.
    fn link(&mut self, port: u8, known: &[(Var, u64, u64)], has_ip: bool) -> Result<Id, Error> {
        Ok(self.projection.case(&Case {
            known,
            sees: &of_ethernet,
            protocol: 256,
            has_ip,
            padding: self.request.assume.padding && has_ip,
            port,
        })?)
    }

    /// Intervals into which the chain divides a variable's values, and the values given.
    fn intervals(&self, of: Var, more: &[u64]) -> Vec<(u64, u64)> {
        let store = &self.of.store;
        let mut cuts = vec![0];
        cuts.extend(more);
        for id in store.reachable(self.of.root) {
            if let Node::Branch { var, kids } = store.node(id)
                && *var == of
            {
                cuts.extend(kids.iter().map(|k| k.0));
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        let ends = cuts.iter().skip(1).map(|c| c - 1).chain([of.most()]);
        cuts.iter().copied().zip(ends).collect()
    }

    /// Lines of a case; what would need further tests goes to a server if nothing more is `read` of these packets.
    fn lines(
        &mut self,
        first: &[Match],
        id: Id,
        unread: bool,
        lines: &mut Vec<(Vec<Match>, To)>,
    ) -> Result<(), Error> {
        for (more, to) in flatten(&self.projection.store, id, &of_ethernet)? {
            let to = match self.projection.store.node(to) {
                Node::Leaf(leaf) => To::Leaf(*leaf),
                Node::Branch { .. } if unread => To::Leaf(SERVER),
                Node::Branch { .. } => {
                    let next = self.regions.len();
                    let number = *self.numbers.entry(to).or_insert(next);
                    if number == next {
                        self.regions.push(to);
                    }
                    To::Region(number)
                }
            };
            lines.push((more.into_iter().chain(first.iter().copied()).collect(), to));
        }
        Ok(())
    }
}

/// The field of Ethernet's type.
fn kind() -> Var {
    Var::Bits(Base::Frame, 96, 16)
}
