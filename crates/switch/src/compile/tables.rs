//! The tables behind the first: ranges of ports, flows, packets.

use std::collections::HashMap;

use millrace_synth::diagram::{Id, Node};
use millrace_synth::rows::{FROM, Line, PROTOCOL, TO, WORDS, hints, shortest};

use super::{LINK, Rules, To, Work, priority};
use crate::Error;
use crate::flatten::{flatten, packet_field};
use crate::matches::{field, matches};
use crate::openflow::{Do, Field, Group, Match};
use crate::outcome::SERVER;
use crate::ports::{Side, Stage, stages};

impl Work<'_> {
    /// All tables but the last; gives the numbers of bits by stage.
    pub fn regions(&mut self, links: &[(u8, Vec<Match>, To)]) -> Result<Vec<[u32; 2]>, Error> {
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

    pub fn finish(self, groups: Vec<Group>, bits: Vec<[u32; 2]>) -> Result<Rules, Error> {
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
