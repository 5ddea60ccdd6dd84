//! A synthesis as tables of rows and groups.
//!
//! Table 0 tells apart what a switch reads differently: frames with VLAN tags, IP headers that it cannot read (whose fields it has
//! as zero), TCP and UDP whose ports it cannot read (zero, too: later fragments, short packets), other IP, other types. Where only
//! tests of addresses and ports are left the rest is a region, whose number is written into metadata; its rules are in a table behind
//! those that look up ranges of ports. Rules with more ranges than metadata holds are divided into stages, each with tables of its
//! own. What differs between the packets of a flow (time to live, code points) is in the last table but one.

use std::collections::HashMap;

use millrace_synth::Synthesis;
use millrace_synth::diagram::{Id, Node};
use millrace_synth::field::{Var, bit, ip};
use millrace_synth::rows::{FROM, Line, PROTOCOL, TO, WORDS, hints, shortest, var, word};

use crate::Error;
use crate::flatten::{flatten, of_ethernet, packet_field};
use crate::matches::{field, matches};
use crate::openflow::{Do, Field, Group, Match, Row, Table};
use crate::outcome::{BACK, IP, Outcome, SERVER};
use crate::ports::{Side, Stage, stages};
use crate::project::{Case, Projection};
use crate::spread;
use crate::switch::Switch;

/// A server behind the switch: it runs the chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// its share of the traffic, in proportion to those of others
    pub weight: u16,
    /// the switch's ports to it, one for each device
    pub ports: Vec<u32>,
}

/// What is known of packets that come to the switch, and cannot be seen in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Assumptions {
    /// IP headers are right: version, lengths, sum
    pub headers: bool,
    /// IP headers have no options
    pub options: bool,
    /// frames have no padding, or nobody minds it
    pub padding: bool,
    /// frames have at most 1,514 bytes
    pub mtu: bool,
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Request {
    /// the switch
    pub switch: Switch,
    /// its ports, one for each device
    pub ports: Vec<u32>,
    /// servers, at least one
    pub servers: Vec<Server>,
    /// what is known
    pub assume: Assumptions,
}

/// Rules of a switch.
#[derive(Clone, Debug)]
pub struct Rules {
    /// tables by number; those without rows are left out
    pub tables: Vec<Table>,
    /// groups, where there are several servers
    pub groups: Vec<Group>,
    /// what is used that OpenFlow 1.3 does not have
    pub extensions: Vec<&'static str>,
    /// why packets go to servers, with the number of actions for which it is so
    pub reasons: Vec<(String, usize)>,
    /// fields that make a difference and are not seen
    pub unseen: Vec<String>,
    /// bits of metadata for ranges of source and destination ports, by stage
    pub bits: Vec<[u32; 2]>,
    /// ports of the switch to servers
    pub to_servers: Vec<u32>,
}

const LINK: u8 = 0;
/// Tables that a switch may have (OpenFlow 1.3.5, 7.3.4.1).
const MOST_TABLES: usize = 254;
/// The longest frame of an Ethernet link with 1,500 bytes of IP.
const MTU: u64 = 1500;

/// Makes the rules.
///
/// # Errors
/// Ports and servers that do not fit the chain, classes that become too many rows, tables that the switch does not hold.
pub fn compile(of: &Synthesis, request: &Request) -> Result<Rules, Error> {
    check(of, request)?;
    let mut work = Work {
        of,
        request,
        projection: Projection::new(of),
        regions: Vec::new(),
        numbers: HashMap::new(),
        tables: vec![Table::new(LINK, "links")],
        packets: 0,
        servers: 0,
    };
    let mut links = Vec::new();
    for port in 0..of.ports.len() as u8 {
        for (matches, to) in work.device(port)? {
            links.push((port, matches, to));
        }
    }
    let bits = work.regions(&links)?;
    let groups = work.servers()?;
    work.finish(groups, bits)
}

fn check(of: &Synthesis, request: &Request) -> Result<(), Error> {
    let devices = of.ports.len();
    let fits = |ports: &[u32]| ports.len() == devices;
    let help = format!("give one for each of {}", of.ports.join(", "));
    if !fits(&request.ports) {
        let what = format!(
            "{} ports of the switch for {devices} devices",
            request.ports.len()
        );
        return Err(Error::new(what, help));
    }
    if request.servers.is_empty() || request.servers.iter().any(|s| !fits(&s.ports)) {
        return Err(Error::new(
            format!("a server needs {devices} ports of the switch, as the chain has devices"),
            help,
        ));
    }
    if request.servers.iter().any(|s| s.weight == 0) {
        return Err(Error::new(
            "a server has the weight 0",
            "give it a share, or leave it out",
        ));
    }
    let servers = request.servers.iter().flat_map(|s| &s.ports);
    let mut all: Vec<u32> = request.ports.iter().chain(servers).copied().collect();
    all.sort_unstable();
    // Numbers from 0xffffff00 on are reserved (OpenFlow 1.3.5, 7.2.1).
    let twice = all.windows(2).find(|w| w.first() == w.last());
    if let Some(port) = twice.and_then(|w| w.first()) {
        return Err(Error::new(
            format!("the switch's port {port} is named twice"),
            "each device and each server's link has a port of its own",
        ));
    }
    match all.iter().find(|p| **p == 0 || **p >= 0xffff_ff00) {
        Some(port) => Err(Error::new(
            format!("{port} is no port of a switch"),
            "ports are numbers from 1 to 4294967039",
        )),
        None => Ok(()),
    }
}

/// Where a row of the first table leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum To {
    Leaf(u32),
    Region(usize),
}

struct Work<'a> {
    of: &'a Synthesis,
    request: &'a Request,
    projection: Projection<'a>,
    regions: Vec<Id>,
    numbers: HashMap<Id, usize>,
    tables: Vec<Table>,
    /// numbers of the last tables
    packets: u8,
    servers: u8,
}

impl Work<'_> {
    fn row(&mut self, table: u8, priority: u16, matches: Vec<Match>, does: Vec<Do>) {
        self.row_from(table, priority, matches, does, None);
    }

    fn row_from(
        &mut self,
        table: u8,
        priority: u16,
        mut matches: Vec<Match>,
        does: Vec<Do>,
        from: Option<String>,
    ) {
        // What writes into the IP header has to match IP (OpenFlow 1.3.5, 7.2.3.6).
        let writes = |one: &Do| match one {
            Do::LowerTtl => true,
            Do::Set(field, _) => !matches!(field, Field::EthDst | Field::EthSrc),
            _ => false,
        };
        if does.iter().any(writes) && !matches.iter().any(|m| m.field == Field::EthType) {
            matches.push(Match::exact(Field::EthType, 0x0800));
        }
        if let Some(table) = self.tables.get_mut(usize::from(table)) {
            let number = table.number;
            table.rows.push(Row {
                table: number,
                priority,
                matches,
                does,
                from,
            });
        }
    }

    /// The last table, what servers send, and groups.
    fn servers(&mut self) -> Result<Vec<Group>, Error> {
        let request = self.request;
        let mut groups = Vec::new();
        let fields = match request.servers.as_slice() {
            [_] => Vec::new(),
            _ if !request.switch.select_by_fields => {
                return Err(Error::new(
                    "OpenFlow 1.3 leaves to the switch how a group divides packets: answers would come to servers that do not know their flow",
                    "name one server, or a switch that divides by fields (ovs)",
                ));
            }
            _ => spread::fields(self.of)?,
        };
        for device in 0..request.ports.len() {
            let to = |s: &Server| s.ports.get(device).copied().unwrap_or(0);
            let does = match fields.get(device) {
                None => Do::Output(request.servers.first().map_or(0, to)),
                Some(by) => {
                    let id = device as u32 + 1;
                    groups.push(Group {
                        id,
                        by: *by,
                        buckets: request.servers.iter().map(|s| (s.weight, to(s))).collect(),
                    });
                    Do::Group(id)
                }
            };
            let port = request.ports.get(device).copied().unwrap_or(0);
            let came = vec![Match::exact(Field::InPort, u64::from(port))];
            self.row(self.servers, 1, came, vec![does]);
            for server in &request.servers {
                let came = vec![Match::exact(Field::InPort, u64::from(to(server)))];
                self.row(LINK, 1, came, vec![Do::Output(port)]);
            }
        }
        Ok(groups)
    }

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
            (
                Var::Bits(millrace_synth::field::Base::Frame, 96, 16),
                0x0800,
                0x0800,
            ),
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
    fn device(&mut self, port: u8) -> Result<Vec<(Vec<Match>, To)>, Error> {
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
        let tagged = [0x8100, 0x88a8];
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

    /// What rows do for an outcome; `port` where it is known by which device packets came.
    fn does(&self, leaf: u32) -> Vec<Do> {
        match self.projection.outcomes.get(leaf) {
            Outcome::Server => vec![Do::Goto(self.servers)],
            Outcome::Drop => Vec::new(),
            Outcome::Forward(to, writes) => {
                let mut does = writes.clone();
                does.push(match *to {
                    BACK => Do::Back,
                    to => Do::Output(
                        self.request
                            .ports
                            .get(usize::from(to))
                            .copied()
                            .unwrap_or(0),
                    ),
                });
                does
            }
        }
    }

    fn table(&mut self, name: &'static str) -> Result<u8, Error> {
        let number = self.tables.len();
        if number >= MOST_TABLES {
            return Err(Error::new(
                format!(
                    "the rules become more than {MOST_TABLES} tables: their ranges of ports do not fit into metadata"
                ),
                "use fewer ranges of ports",
            ));
        }
        self.tables.push(Table::new(number as u8, name));
        Ok(number as u8)
    }

    /// All tables but the last; gives the numbers of bits by stage.
    fn regions(&mut self, links: &[(u8, Vec<Match>, To)]) -> Result<Vec<[u32; 2]>, Error> {
        let hints = match self.regions.is_empty() {
            true => Vec::new(),
            false => hints(self.of),
        };
        let mut lists = Vec::new();
        for id in self.regions.clone() {
            lists.push(shortest(&mut self.projection.store, id, &hints)?);
        }
        let region_bits = usize::BITS - lists.len().saturating_sub(1).leading_zeros();
        let region_mask = (1_u64 << region_bits) - 1;
        let mut stages = stages(&lists, region_bits);
        for stage in &mut stages {
            let [source, destination] = &stage.sides;
            let [source, destination] = [source, destination].map(|s| !s.codes.is_empty());
            stage.source = match source {
                true => Some(self.table("source ports")?),
                false => None,
            };
            stage.destination = match destination {
                true => Some(self.table("destination ports")?),
                false => None,
            };
            stage.flows = self.table("flows")?;
        }
        self.packets = self.table("packets")?;
        self.servers = self.table("servers")?;
        let count = links.len();
        for (n, (port, matches, to)) in links.iter().enumerate() {
            let number = self
                .request
                .ports
                .get(usize::from(*port))
                .copied()
                .unwrap_or(0);
            let mut all = vec![Match::exact(Field::InPort, u64::from(number))];
            all.extend(matches);
            let does = match to {
                To::Leaf(leaf) => self.does(*leaf),
                To::Region(region) => {
                    let table = stages.first().map_or(self.servers, |s| s.entry(*region));
                    match region_bits {
                        0 => vec![Do::Goto(table)],
                        _ => vec![Do::Write(*region as u64, region_mask), Do::Goto(table)],
                    }
                }
            };
            self.row(LINK, priority(count - n + 1, "links")?, all, does);
        }
        for (number, stage) in stages.iter().enumerate() {
            self.ports(stage, number > 0);
        }
        self.flows(&stages, region_mask)?;
        Ok(stages
            .iter()
            .map(|s| s.sides.each_ref().map(|s| s.bits))
            .collect())
    }

    /// Tables of ranges of a stage; codes of the stage before are taken away.
    fn ports(&mut self, stage: &Stage<'_>, again: bool) {
        let masks = self.request.switch.masked_ports;
        let [source, destination] = &stage.sides;
        let next = stage.destination.unwrap_or(stage.flows);
        for (table, side, field, next) in [
            (stage.source, source, Field::PortSrc, next),
            (stage.destination, destination, Field::PortDst, stage.flows),
        ] {
            let Some(table) = table else { continue };
            let mask = side.codes.values().fold(0, |m, (_, _, mask)| m | mask);
            for (protocol, one) in [(6, 1), (17, 2)] {
                for (value, ports, code) in side.rows(one, masks) {
                    let all = vec![
                        Match::exact(Field::EthType, 0x0800),
                        Match::exact(Field::IpProto, protocol),
                        Match {
                            field,
                            value,
                            mask: ports,
                        },
                    ];
                    self.row(table, 2, all, vec![Do::Write(code, mask), Do::Goto(next)]);
                }
            }
            let mut does = vec![Do::Goto(next)];
            if again {
                does.insert(0, Do::Write(0, mask));
            }
            self.row(table, 1, Vec::new(), does);
        }
    }

    /// Tables of flows and of packets.
    fn flows(&mut self, stages: &[Stage<'_>], mask: u64) -> Result<(), Error> {
        let mut nodes: HashMap<Id, u64> = HashMap::new();
        let mut order = Vec::new();
        for (number, stage) in stages.iter().enumerate() {
            for (region, lines) in stage.lines.iter().enumerate() {
                let mut rows = Vec::new();
                for line in *lines {
                    let does = match self.projection.store.node(line.to) {
                        Node::Leaf(leaf) => self.does(*leaf),
                        Node::Branch { .. } => {
                            let next = nodes.len() as u64;
                            let number = *nodes.entry(line.to).or_insert(next);
                            if number == next {
                                order.push(line.to);
                            }
                            vec![Do::Write(number, u64::MAX), Do::Goto(self.packets)]
                        }
                    };
                    for all in self.expand(line, region as u64, mask, &stage.sides)? {
                        rows.push((all, does.clone(), line.from.clone()));
                    }
                }
                // What no row of this stage takes is for the next one.
                let more = stages.get(number + 1).filter(|s| !s.of(region).is_empty());
                if let Some(next) = more {
                    let all = match mask {
                        0 => Vec::new(),
                        _ => vec![Match {
                            field: Field::Metadata,
                            value: region as u64,
                            mask,
                        }],
                    };
                    rows.push((all, vec![Do::Goto(next.entry(region))], None));
                }
                let count = rows.len();
                for (n, (all, does, from)) in rows.into_iter().enumerate() {
                    let priority = priority(count - n, "flows")?;
                    self.row_from(stage.flows, priority, all, does, from);
                }
            }
        }
        for (number, id) in order.into_iter().enumerate() {
            let lines = flatten(&self.projection.store, id, &|v| packet_field(v).is_some())?;
            let count = lines.len();
            for (n, (matches, to)) in lines.into_iter().enumerate() {
                let leaf = match self.projection.store.node(to) {
                    Node::Leaf(leaf) => *leaf,
                    Node::Branch { .. } => SERVER,
                };
                let mut all = vec![Match::exact(Field::Metadata, number as u64)];
                if !matches.is_empty() {
                    all.push(Match::exact(Field::EthType, 0x0800));
                }
                all.extend(matches);
                let does = self.does(leaf);
                self.row(self.packets, priority(count - n, "packets")?, all, does);
            }
        }
        Ok(())
    }

    /// Rows of a line: one, unless a range is no prefix and has no bit.
    fn expand(
        &self,
        line: &Line,
        region: u64,
        mask: u64,
        sides: &[Side; 2],
    ) -> Result<Vec<Vec<Match>>, Error> {
        let mut metadata = Match {
            field: Field::Metadata,
            value: region,
            mask,
        };
        let mut rows = vec![Vec::new()];
        let mut whole = true;
        for word in 0..WORDS {
            let (low, high) = line.cube.get(word);
            let of = match word {
                FROM => sides.first(),
                TO => sides.get(1),
                _ => None,
            };
            if let Some((_, value, mask)) = of.and_then(|s| s.codes.get(&(low, high))) {
                metadata.value |= value;
                metadata.mask |= mask;
                continue;
            }
            let exact =
                word == PROTOCOL || matches!(word, FROM | TO) && !self.request.switch.masked_ports;
            let pieces = matches(field(word), low, high, exact).ok_or_else(|| {
                Error::new(
                    format!("the range {low}-{high} of ports has no bit of metadata left, and the switch matches no masked ports"),
                    "use fewer ranges of ports, or a switch that has masks for them (ovs)",
                )
            })?;
            whole &= pieces == [None];
            rows = rows
                .iter()
                .flat_map(|row: &Vec<Match>| {
                    pieces.iter().map(move |piece| {
                        let mut row = row.clone();
                        row.extend(piece);
                        row
                    })
                })
                .collect();
        }
        for row in &mut rows {
            if !whole {
                row.insert(0, Match::exact(Field::EthType, 0x0800));
            }
            if metadata.mask != 0 {
                row.insert(0, metadata);
            }
        }
        Ok(rows)
    }

    fn finish(self, groups: Vec<Group>, bits: Vec<[u32; 2]>) -> Result<Rules, Error> {
        let mut tables = self.tables;
        tables.retain(|t| !t.rows.is_empty());
        for table in &mut tables {
            table.rows.sort_by_key(|r| u16::MAX - r.priority);
        }
        let most = tables.iter().max_by_key(|t| t.rows.len());
        if let Some(table) = most.filter(|t| t.rows.len() > self.request.switch.rows) {
            return Err(Error::new(
                format!(
                    "table {} ({}) needs {} rows, and the switch holds {} in a table",
                    table.number,
                    table.name,
                    table.rows.len(),
                    self.request.switch.rows
                ),
                format!(
                    "the smallest that would do has {} rows in a table; or let the switch have fewer rules of the chain",
                    table.rows.len()
                ),
            ));
        }
        let all = || tables.iter().flat_map(|t| &t.rows).flat_map(|r| &r.matches);
        let mut extensions = Vec::new();
        let is_port = |m: &Match| matches!(m.field, Field::PortSrc | Field::PortDst);
        if all().any(|m| is_port(m) && m.mask != 0xffff) {
            extensions.push("masked ports");
        }
        if all().any(|m| m.field == Field::Ttl) {
            extensions.push("nw_ttl");
        }
        if !groups.is_empty() {
            extensions.push("selection_method");
        }
        let servers = &self.request.servers;
        Ok(Rules {
            tables,
            groups,
            extensions,
            reasons: self.projection.outcomes.reasons.into_iter().collect(),
            unseen: self.projection.unseen.into_iter().collect(),
            bits,
            to_servers: servers.iter().flat_map(|s| s.ports.clone()).collect(),
        })
    }
}

/// The field of Ethernet's type.
fn kind() -> Var {
    Var::Bits(millrace_synth::field::Base::Frame, 96, 16)
}

fn priority(number: usize, table: &str) -> Result<u16, Error> {
    u16::try_from(number).map_err(|_| {
        Error::new(
            format!("{number} rows of the table of {table} come one before the other, and a switch has 65,535 priorities"),
            "divide the chain, and let the switch have its first part",
        )
    })
}

impl Rules {
    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.tables.iter().flat_map(|t| &t.rows)
    }

    /// What is given to `ovs-ofctl`: a name, the version of OpenFlow, the command, and the lines, with where rows come from as comments. Rows that
    /// OpenFlow 1.3 has no words for are a part of their own.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        if !self.groups.is_empty() {
            parts.push(Part {
                name: "groups",
                version: "OpenFlow15",
                command: "add-groups",
                text: self.groups.iter().map(|g| format!("{g}\n")).collect(),
            });
        }
        let rows = |extended: bool| {
            let mut text = String::new();
            for table in &self.tables {
                let mut rows = table
                    .rows
                    .iter()
                    .filter(|r| r.extended() == extended)
                    .peekable();
                if rows.peek().is_some() {
                    text.push_str(&format!("# table {}: {}\n", table.number, table.name));
                }
                for row in rows {
                    if let Some(from) = &row.from {
                        text.push_str(&format!("# {from}\n"));
                    }
                    text.push_str(&format!("{row}\n"));
                }
            }
            text
        };
        parts.push(Part {
            name: "flows",
            version: "OpenFlow13",
            command: "add-flows",
            text: rows(false),
        });
        if self.rows().any(Row::extended) {
            parts.push(Part {
                name: "flows-extended",
                version: "OpenFlow10",
                command: "add-flows",
                text: rows(true),
            });
        }
        parts
    }

    /// All of it as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let reasons = self.reasons.iter();
        serde_json::json!({
            "tables": self.tables.iter().map(|t| serde_json::json!({
                "table": t.number, "name": t.name, "rows": t.rows.len(),
            })).collect::<Vec<_>>(),
            "groups": self.groups.iter().map(Group::json).collect::<Vec<_>>(),
            "rows": self.rows().map(Row::json).collect::<Vec<_>>(),
            "extensions": self.extensions,
            "metadata_bits": self.bits.iter().map(|[source, destination]| serde_json::json!({
                "source": source, "destination": destination,
            })).collect::<Vec<_>>(),
            "to_servers": reasons.map(|(reason, actions)| serde_json::json!({
                "reason": reason, "actions": actions,
            })).collect::<Vec<_>>(),
            "unseen": self.unseen,
        })
    }
}

/// Lines for one call of `ovs-ofctl`.
pub struct Part {
    /// a name for a file
    pub name: &'static str,
    /// the version of OpenFlow
    pub version: &'static str,
    /// the command
    pub command: &'static str,
    /// the lines
    pub text: String,
}
