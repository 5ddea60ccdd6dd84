//! Between captures, or by workers between live ports and over several functions in a row.

use std::time::Instant;

use millrace::{Job, Ports, place};
use millrace_chain::connect::connect;
use millrace_chain::{Description, What};
use millrace_control::Elements;
use millrace_control::elements;
use millrace_dataplane::account::Account;
use millrace_dataplane::clock::Rate;
use millrace_dataplane::module::Entry;
use millrace_dataplane::packet::Layout;
use millrace_dataplane::worker::{Code, Link};
use millrace_dataplane::{port, signal};

use super::chain;
use super::element::{self, Element};
use super::lookout::Lookout;
use super::patience::Patience;
use super::printed::Printed;
use super::{Run, fates, records};
use crate::failure::Failure;
use crate::log::Message;
use crate::metrics::Endpoint;
use crate::outside::Outside;
use crate::progress::Bar;
use crate::{log, screen};

impl Run {
    /// Runs one function between captures, or whatever there is between live ports.
    pub(super) fn by_workers(
        &self,
        described: &Description,
        elements: &[Element],
        routes: Vec<Entry>,
        between: &Ports,
        captures: bool,
    ) -> Result<Account, Failure> {
        signal::install();
        let named: Vec<_> = elements.iter().map(Element::named).collect();
        let connected = connect(described, &named).map_err(chain::wrong)?;
        let ports = match &connected {
            Some(connected) => connected.ports.clone(),
            None => elements.first().map_or(Vec::new(), |e| e.ports().to_vec()),
        };
        let ports = between.names(&ports)?;
        let order = connected.as_ref().map(|c| c.order.clone());
        let order = order.unwrap_or_else(|| (0..elements.len()).collect());
        let parts = order.iter().filter_map(|at| {
            let element = elements.get(*at)?;
            Some((element, described.elements.get(*at)?))
        });
        let parts: Vec<_> = parts.collect();
        let hosts = elements.iter().any(|e| e.function().is_none());
        let classes = match hosts && self.cores > 1 {
            true => Some(place::classes(self.classes(), self.cores)?),
            false => None,
        };
        let mut opened = match parts.as_slice() {
            [(Element::Function(one), _)] => {
                let shown = if captures { &[] } else { ports.as_slice() };
                self.outside.open(&one.exposed, shown, self.cores)?
            }
            row => {
                let names: Vec<_> = elements.iter().map(Element::name).collect();
                let name = described.name.clone().unwrap_or_else(|| names.join("+"));
                let shown = Elements::new(&name, shown(row));
                if let Some(classes) = &classes {
                    shown.parted(classes);
                }
                self.outside.open_row(shown, self.cores)?
            }
        };
        opened.entries.extend(routes);
        let mut chain = Vec::new();
        let mut parted = Vec::new();
        // Where ports are served their output stands among the run's own messages.
        let mut printed = Printed::default();
        for (index, (element, of)) in parts.iter().enumerate() {
            let several = parts.len() > 1 || described.file.is_some();
            let name = if several {
                of.name.as_str()
            } else {
                element.name()
            };
            let function = match element {
                Element::Function(function) => function,
                Element::Guest(specs) => {
                    let specs = &match between.live() {
                        true => element::printed(specs, name, &mut printed)?,
                        false => specs.clone(),
                    };
                    let code = match &classes {
                        None => element::start(specs)?,
                        Some(classes) => {
                            let guests = element::start_each(specs, classes)?;
                            parted.push((name.to_owned(), guests.clone()));
                            Code::Classed(guests)
                        }
                    };
                    chain.push(element::link(name, code));
                    continue;
                }
            };
            let mut entries = match &of.what {
                What::Function(asked) => {
                    let maps = chain::maps(described, &asked.maps);
                    Outside::entries(&maps, &function.exposed)?
                }
                What::Guest(_) => Vec::new(),
            };
            entries.extend(match parts.as_slice() {
                [_] => std::mem::take(&mut opened.entries),
                _ => {
                    let own = chain::of(described, of, self.outside.maps())?;
                    Outside::entries(&own, &function.exposed)?
                }
            });
            // Functions in a row must not draw the same.
            let seed = self.seed.wrapping_add(index as u64);
            chain.push(Link {
                name: name.to_owned(),
                ..function.link(seed, entries, !self.no_prefetch)?
            });
        }
        if let Some(elements) = opened
            .elements
            .as_ref()
            .filter(|_| self.cores == 1 && !captures)
        {
            elements.changeable(Box::new(self.maker(chain.len(), between.live())));
        }
        if let Some(elements) = &opened.elements {
            elements.started(&chain);
            elements.hosted(parted);
        }
        if hosts {
            log::note(if millrace_guest::protect::available() {
                "protection keys keep guests out of the host's memory and of one another's: that contains \
                 faults, and is no defence against malice (docs/guests.md)"
            } else {
                "guests are contained, not isolated: a guest's stray writes into the host or another guest \
                 are not caught, because this processor has no protection keys (docs/guests.md)"
            });
        }
        // What several functions in a row do spreads, or is under the lock: any packet goes to any worker.
        let placement = match elements {
            [Element::Function(only)] => only.placement.clone(),
            _ => None,
        };
        let function = elements.iter().find_map(Element::function);
        let mut lookout = Lookout::new(chain.iter().map(|link| link.name.clone()).collect());
        let job = Job {
            topology: connected.map(|c| c.topology),
            workers: self.cores,
            placement,
            classes,
            cpus: self.cpus.clone(),
            burst: self.burst,
            layout: function.map_or(Layout::Pooled, |f| f.layout),
            loops: self.rounds(),
            packets: self.packets,
            time: self.seconds,
            busy: self.busy,
            mailboxes: opened.mailboxes.clone(),
            at_end: opened.at_end.take(),
            serve: !captures,
            ..Job::new(chain, ports)
        };
        let mut job = job.open(between, signal::flag())?;
        job.records = self.records.as_deref().map(records).transpose()?;
        job.fates = self.fates.as_deref().map(fates).transpose()?;
        let live = job.words().iter().any(|w| port::is_live(w));
        if live {
            let words = job.words().join(", ");
            let workers = if self.cores == 1 { "worker" } else { "workers" };
            screen::err(&format!(
                "serving {words} with {} {workers}; ^C drains and ends",
                self.cores
            ));
        }
        let metrics = self.metrics.map(Endpoint::open).transpose()?;
        if let Some(endpoint) = &metrics {
            screen::err(&format!("metrics at http://{}/metrics", endpoint.address));
        }
        let rate = Rate::start();
        let _patience = Patience::begin(self.json);
        let mut bar = Bar::new();
        let account = job.run(signal::flag(), &mut |seen| {
            if let Some(counts) = seen.counts {
                let seconds = rate.elapsed().as_secs_f64();
                let account = counts.account(rate.ns_per_tick(), seconds);
                let mut say = |message: &Message| bar.above(|| message.say());
                lookout.look(&counts.guests(), &mut say);
                lookout.account(&account, Instant::now(), &mut say);
                if let Some(endpoint) = &metrics {
                    endpoint.update(account);
                }
            }
            bar.show(seen.read, seen.share);
        });
        bar.end();
        drop(printed);
        opened.close(account)
    }
}

/// The elements as requests see them, with the numbers that the chain gives them.
fn shown(parts: &[(&Element, &millrace_chain::Element)]) -> Vec<elements::Element> {
    let of = |((element, described), id): (&(&Element, &millrace_chain::Element), u64)| {
        let ports = match element.ports() {
            [] => vec!["0".to_owned(), "1".to_owned()],
            ports => ports.to_vec(),
        };
        elements::Element {
            id,
            name: described.name.clone(),
            ports,
            exposed: element.function().map(|f| f.exposed.clone()),
            guests: Vec::new(),
        }
    };
    parts.iter().zip(0..).map(of).collect()
}
