//! A synthesis as tables of rows and groups.
//!
//! Table 0 tells apart what a switch reads differently: frames with VLAN tags, IP headers that it cannot read (whose fields it has
//! as zero), TCP and UDP whose ports it cannot read (zero, too: later fragments, short packets), other IP, other types. Where only
//! tests of addresses and ports are left the rest is a region, whose number is written into metadata; its rules are in a table behind
//! those that look up ranges of ports. Rules with more ranges than metadata holds are divided into stages, each with tables of its
//! own. What differs between the packets of a flow (time to live, code points) is in the last table but one.

mod links;
mod request;
mod rules;
mod tables;

use std::collections::HashMap;

use millrace_synth::Synthesis;
use millrace_synth::diagram::Id;

use crate::Error;
use crate::openflow::{Do, Field, Group, Match, Row, Table};
use crate::outcome::{BACK, Outcome};
use crate::project::Projection;
use crate::spread;

pub use request::{Assumptions, Request, Server};
pub use rules::{Part, Rules};

const LINK: u8 = 0;
/// Tables that a switch may have (OpenFlow 1.3.5, 7.3.4.1).
const MOST_TABLES: usize = 254;

/// Makes the rules.
///
/// # Errors
/// Ports and servers that do not fit the chain, classes that become too many rows, tables that the switch does not hold.
pub fn compile(of: &Synthesis, request: &Request) -> Result<Rules, Error> {
    request.fits(of)?;
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
}

fn priority(number: usize, table: &str) -> Result<u16, Error> {
    u16::try_from(number).map_err(|_| {
        Error::new(
            format!("{number} rows of the table of {table} come one before the other, and a switch has 65,535 priorities"),
            "divide the chain, and let the switch have its first part",
        )
    })
}
