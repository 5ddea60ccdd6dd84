//! Between live ports, or several functions in a row: by workers.

use millrace_chain::connect::connect;
use millrace_chain::{Description, What};
use millrace_control::Elements;
use millrace_control::elements;
use millrace_dataplane::account::Account;
use millrace_dataplane::clock::Rate;
use millrace_dataplane::module::Entry;
use millrace_dataplane::place::{self, Stay};
use millrace_dataplane::runner::Progress;
use millrace_dataplane::worker::{self, Code, Link, ModuleCode};
use millrace_dataplane::{Serve, port, signal};
use millrace_steer::Steering;

use super::chain;
use super::element::{self, Element};
use super::patience::Patience;
use super::{Run, no_state, records};
use crate::failure::Failure;
use crate::metrics::Endpoint;
use crate::outside::Outside;
use crate::parallel::{self, Arrangement};
use crate::progress::Bar;
use crate::wiring::{self, Words};
use crate::{screen, serving};

impl Run {
    /// Runs functions between live ports, or several in a row.
    pub(super) fn by_workers(
        &self,
        described: &Description,
        elements: &[Element],
        routes: Vec<Entry>,
        arrangements: &[Option<Arrangement>],
    ) -> Result<Account, Failure> {
        let mut asked = self.asked();
        signal::install();
        let named: Vec<_> = elements.iter().map(Element::named).collect();
        let connected = connect(described, &named).map_err(chain::wrong)?;
        let ports = match &connected {
            Some(connected) => connected.ports.clone(),
            None => elements.first().map_or(Vec::new(), |e| e.ports().to_vec()),
        };
        let both: &[String] = &self.ports;
        let words = Words {
            inputs: if both.is_empty() { &self.inputs } else { both },
            outputs: if both.is_empty() { &self.outputs } else { both },
            split: self.split.as_ref(),
            pass: None,
        };
        let ports = wiring::port_names(&ports, &words)?;
        let order = connected.as_ref().map(|c| c.order.clone());
        let order = order.unwrap_or_else(|| (0..elements.len()).collect());
        let parts = order.iter().filter_map(|at| {
            let element = elements.get(*at)?;
            Some((element, described.elements.get(*at)?))
        });
        let arranged = |at: &usize| arrangements.get(*at).and_then(Option::as_ref);
        let arranged: Vec<_> = order.iter().map(arranged).collect();
        // What several functions in a row do spreads, or is under the lock: any packet goes to any worker.
        let only = match arranged.as_slice() {
            [only] => *only,
            _ => None,
        };
        let parts: Vec<_> = parts.collect();
        let hosts = elements.iter().any(|e| e.function().is_none());
        let classes = match hosts && self.cores > 1 {
            true => Some(parallel::classes(self.classes(), self.cores)?),
            false => None,
        };
        let mut opened = match parts.as_slice() {
            [(Element::Function(one), _)] => self.outside.open(&one.exposed, &ports, self.cores)?,
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
            let own = arranged.get(index).copied().flatten();
            if let Some(own) = own {
                own.allow_contents(&function.exposed, &entries, self.cores)?;
            }
            let mut config = self.config(index, function, entries);
            config.homes = own.and_then(Arrangement::homes);
            chain.push(Link {
                name: name.to_owned(),
                code: Code::Module(ModuleCode {
                    module: function.module.clone(),
                    config,
                    program: function.entry,
                    prefetch: !self.no_prefetch,
                }),
                reasons: function.reasons.clone(),
                objects_bytes: function.objects_bytes,
                shares: own.map_or_else(Vec::new, |a| a.shares(function)),
            });
        }
        if let Some(elements) = opened.elements.as_ref().filter(|_| self.cores == 1) {
            elements.changeable(Box::new(self.maker(chain.len())));
        }
        if let Some(elements) = &opened.elements {
            elements.hosted(parted);
        }
        if hosts {
            screen::err(if millrace_guest::protect::available() {
                "note: protection keys keep guests out of the host's memory and of one another's: that contains \
                 faults, and is no defence against malice (docs/guests.md)"
            } else {
                "note: guests are contained, not isolated: a guest's stray writes into the host or another guest \
                 are not caught, because this processor has no protection keys (docs/guests.md)"
            });
        }
        let allowed = place::processors(asked.ports_named());
        let cpus = match (self.cpus.is_empty(), self.cores <= allowed.len()) {
            (false, _) => self.cpus.clone(),
            (true, true) => allowed,
            // More workers than processors: the system shares them out.
            (true, false) => Vec::new(),
        };
        asked.classes = classes;
        asked.steering = only.and_then(|a| a.placement.steering(ports.len()));
        let there = Stay::near(cpus.first().copied());
        let steering = asked.steering.iter().flatten();
        let owners = steering.map(Steering::owners).collect();
        let served = serving::open(&asked, &ports)?;
        drop(there);
        let live = served.words.iter().any(|w| port::is_live(w));
        if live {
            let words = served.words.join(", ");
            let workers = if self.cores == 1 { "worker" } else { "workers" };
            screen::err(&format!(
                "serving {words} with {} {workers}; ^C drains and ends",
                self.cores
            ));
        }
        let serve = Serve {
            chain,
            topology: connected.map(|c| c.topology),
            ports,
            owners,
            workers: served.workers,
            words: served.words,
            of_port: served.of_port,
            pass: served.pass,
            cpus,
            holds: served.holds,
            facts: served.facts,
            records: self.records.as_deref().map(records).transpose()?,
            burst: self.burst,
            packets: self.packets,
            time: self.seconds,
            busy: self.busy,
            mailboxes: opened.mailboxes.clone(),
            at_end: opened.at_end.take(),
        };
        let metrics = self.metrics.map(Endpoint::open).transpose()?;
        if let Some(endpoint) = &metrics {
            screen::err(&format!("metrics at http://{}/metrics", endpoint.address));
        }
        let rate = Rate::start();
        let _patience = Patience::begin(self.json);
        let mut bar = Bar::new();
        let account = worker::serve(serve, signal::flag(), &mut |shared| {
            if let Some(endpoint) = &metrics {
                let seconds = rate.elapsed().as_secs_f64();
                endpoint.update(shared.account(rate.ns_per_tick(), seconds));
            }
            bar.show(Progress {
                read: shared.read(),
                share: None,
            });
        });
        bar.end();
        opened.close(account.map_err(no_state))
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
        }
    };
    parts.iter().zip(0..).map(of).collect()
}
