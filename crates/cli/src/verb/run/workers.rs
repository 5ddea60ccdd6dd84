//! Between captures, or by workers between live ports and over several functions in a row.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millrace::balancer::Balancer;
use millrace::rotation::Rotation;
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
use millrace_export::{Counts, Exporter};

use super::chain;
use super::claims;
use super::element::{self, Element};
use super::elephant::Recipe as Heavy;
use super::lookout::Lookout;
use super::patience::Patience;
use super::printed::Printed;
use super::reload::Recipe;
use super::state::{Held, Saver};
use super::traced::Traced;
use super::{Run, Serving, fates, records};
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
        (described, held): (&Description, Option<Held>),
        elements: &[Element],
        routes: &[Entry],
        (between, captures): (&Ports, bool),
        Serving { aside, mut notify }: Serving,
    ) -> Result<(Account, Option<Counts>), Failure> {
        signal::install();
        let named: Vec<_> = elements.iter().map(Element::named).collect();
        let connected = connect(described, &named).map_err(chain::wrong)?;
        let ports = match &connected {
            Some(connected) => connected.ports.clone(),
            None => {
                let own = elements.first().map_or(&[][..], |e| e.ports());
                // One function in the place of a row has the row's names, which may be no words of C.
                match described.called.len() == own.len() {
                    true => described.called.clone(),
                    false => own.to_vec(),
                }
            }
        };
        let declared = ports;
        let ports = between.names(&declared)?;
        self.hint(&declared);
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
        let mut contents = None;
        let mut joined = None;
        if let (Some(described), [(Element::Function(one), _)]) =
            (&self.cluster.described, parts.as_slice())
        {
            if captures {
                return Err(Failure::wrong("--cluster is for live ports")
                    .help("name interfaces with --ports"));
            }
            joined = described.join(one, ports.len())?;
            if joined.is_none() {
                log::note(format!(
                    "any machine may have any packet of {}: nothing goes between them",
                    one.name
                ));
            }
        }
        let classes = match (self.balance, parts.as_slice(), &joined) {
            (_, _, Some(joined)) => {
                contents = Some(joined.contents.clone());
                Some(joined.classes.clone())
            }
            (Some(_), [(Element::Function(one), _)], None) => {
                if captures {
                    return Err(Failure::wrong("--balance is for live ports")
                        .help("`millrace verify --moves` moves buckets over captures"));
                }
                let placement = one.placement.as_deref();
                let (classes, of) = place::buckets(&one.name, placement, &one.module, self.cores)?;
                contents = Some(of);
                Some(classes)
            }
            _ => classes,
        };
        let mut opened = match parts.as_slice() {
            [(Element::Function(one), of)] => {
                let shown = if captures { &[] } else { ports.as_slice() };
                let element = match described.file {
                    Some(_) => of.name.as_str(),
                    None => &one.name,
                };
                let name = described.name.as_deref().unwrap_or(element);
                let names = (name, element);
                self.outside.open(names, &one.exposed, shown, self.cores)?
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
        if let (Some(classes), Some(_), Some(elements)) = (&classes, &contents, &opened.elements) {
            elements.parted(classes);
        }
        let names = parts.iter().map(|(element, of)| {
            let several = parts.len() > 1 || described.file.is_some();
            (
                *element,
                if several {
                    of.name.as_str()
                } else {
                    element.name()
                },
            )
        });
        let names: Vec<_> = names.collect();
        let saver = match (held, &opened.elements) {
            (Some(held), Some(shown)) => Some(self.saver(held, &names, shown)?),
            _ => None,
        };
        if (saver.is_some() || self.sample.is_some()) && opened.mailboxes.is_empty() {
            opened.mailboxes = (0..self.cores).map(|_| Arc::default()).collect();
        }
        opened.entries.extend(routes.iter().cloned());
        let mut chain = Vec::new();
        let mut parted = Vec::new();
        let topology = connected.as_ref().map(|c| &c.topology);
        let mut traced = Traced::new(&ports, topology);
        let mut recipes: Vec<Arc<dyn Any + Send + Sync>> = Vec::new();
        // Where ports are served their output stands among the run's own messages.
        let mut printed = Printed::default();
        let mut drawing = 0;
        for (index, (element, of)) in parts.iter().enumerate() {
            let name = names.get(index).map_or("", |(_, name)| *name);
            let function = match element {
                Element::Function(function) => function,
                Element::Guest(specs) => {
                    if let What::Guest(guest) = &of.what {
                        recipes.push(Arc::new(Recipe::guest(guest)));
                    }
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
            // What its files hold is what a reload compares with.
            let mut own = chain::entries(described, of, &function.exposed)?;
            let mut entries = own.clone();
            entries.extend(match parts.as_slice() {
                [_] => std::mem::take(&mut opened.entries),
                _ => {
                    let own = chain::of(described, of, self.outside.maps())?;
                    Outside::entries(&own, &function.exposed)?
                }
            });
            if let (Some(_), What::Function(asked)) = (&self.origin, &of.what) {
                let line = chain::of(described, of, self.outside.maps())?;
                own.extend(Outside::entries(&line, &function.exposed)?);
                own.extend(routes.iter().cloned());
                let capacities = self.make(described, of, asked)?.capacities;
                let recipe = Recipe::function(&asked.word, &capacities, function, own)?;
                recipes.push(Arc::new(recipe));
            }
            let seed = function.seed(self.seed, &mut drawing);
            traced.add(index as u64, name, function, seed);
            chain.push(Link {
                name: name.to_owned(),
                ..function.link(seed, entries, !self.no_prefetch)?
            });
        }
        let several = match parts.as_slice() {
            [(Element::Function(one), _)] => self.several(Some(one), None),
            _ => self.several(None, classes.as_ref().filter(|_| hosts)),
        };
        if let Some(elements) = opened.elements.as_ref().filter(|_| !captures) {
            let maker = self.maker(chain.len(), between.live(), several.clone());
            elements.changeable(Box::new(maker));
        }
        let exporter = self.export(&ports, || traced.all(), &opened.mailboxes, between.live())?;
        if let Some(elements) = &opened.elements {
            elements.started(&chain);
            elements.hosted(parted);
            if traced.any() {
                elements.profiled(Box::new(traced.clone()));
                elements.traceable(Box::new(traced));
            }
            if let Some(source) = self.source(chain.len(), several) {
                elements.reloadable(source, recipes);
            }
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
            classes: classes.clone(),
            contents,
            copies: joined.as_ref().and_then(|j| j.copies.clone()),
            arrivals: joined.as_ref().and_then(|j| j.arrivals.lock().ok()?.take()),
            cpus: self.cpus.clone(),
            burst: self.burst,
            rows: self.history_rows,
            layout: function.map_or(Layout::Pooled, |f| f.layout),
            loops: self.rounds(),
            packets: self.packets,
            time: self.seconds,
            busy: self.busy,
            mailboxes: opened.mailboxes.clone(),
            at_end: opened.at_end.take(),
            keep: saver.as_ref().map(Saver::keep),
            serve: !captures,
            ..Job::new(chain, ports)
        };
        let claimed = claims::Held::of(between.words());
        let opened_ports = aside.with(|| job.open(between, signal::flag()));
        let mut job = opened_ports.map_err(|failure| claimed.told(failure))?;
        aside.give_up();
        claimed.note();
        job.records = self.records.as_deref().map(records).transpose()?;
        job.fates = self.fates.as_deref().map(fates).transpose()?;
        for choice in job.choices() {
            screen::err(&format!("note: {choice}"));
        }
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
        let words = match job.words() {
            [] => "captures".to_owned(),
            words => words.join(", "),
        };
        // The host's own stack sees what the other kinds receive.
        let takes = |word: &&String| word.starts_with("afxdp:") || word.starts_with("dpdk:");
        let taking: Vec<String> = match self.pass {
            None => job.words().iter().filter(takes).cloned().collect(),
            Some(_) => Vec::new(),
        };
        let rate = Rate::start();
        let _patience = Patience::begin(self.json);
        let ticking = saver.as_ref().and_then(|s| s.begin(&opened.mailboxes));
        let mut bar = Bar::new();
        let balancer = classes
            .as_ref()
            .zip(self.balance.filter(|every| *every > 0));
        let recipe = match parts.as_slice() {
            [(Element::Function(one), of)] if balancer.is_some() => match &of.what {
                What::Function(asked) => {
                    let make = self.make(described, of, asked)?;
                    let word = chain::path(described, &asked.word);
                    Some(Heavy::new(&word, make, &one.name, self.cores, &self.nic))
                }
                What::Guest(_) => None,
            },
            _ => None,
        };
        let balancer = balancer.zip(recipe).map(|((classes, every), heavy)| {
            Balancer::begin(
                classes,
                Duration::from_millis(every),
                move |bucket, share| {
                    log::note(heavy.told(bucket, share));
                },
            )
        });
        let rotation = { classes.as_ref().zip(self.rotate_every) }
            .map(|(classes, every)| {
                Rotation::begin(classes, every, |why| {
                    log::note(format!("the key of the hash was not changed: {why}"));
                })
                .map_err(|why| {
                    Failure::no(format!("--rotate-every: {why}")).help("leave --rotate-every out")
                })
            })
            .transpose()?;
        let posts = joined.as_ref().map(millrace::cluster::Joined::posts);
        let member = { self.cluster.described.as_ref().zip(joined) }
            .map(|(described, joined)| {
                let end = || signal::flag().store(true, std::sync::atomic::Ordering::Relaxed);
                described.begin(&joined, |why| log::note(why), end)
            })
            .transpose()?;
        let account = job.run(signal::flag(), &mut |seen| {
            if let Some(counts) = seen.counts {
                let seconds = rate.elapsed().as_secs_f64();
                let account = counts.account(rate.ns_per_tick(), seconds);
                let mut say = |message: &Message| bar.above(|| message.say());
                lookout.look(&counts.guests(), &mut say);
                lookout.account(&account, Instant::now(), &mut say);
                lookout.passed(account.passed, &taking, &mut say);
                if let Some(posts) = &posts {
                    posts.post(&account);
                }
                if let Some(endpoint) = &metrics {
                    endpoint.update(account, exporter.as_ref().map(Exporter::counts));
                }
            }
            notify.look(&words, seen);
            bar.show(seen.read, seen.share);
        });
        drop((balancer, rotation, member));
        notify.end();
        bar.end();
        drop(printed);
        let account = account.map(|mut account| {
            if let Some(saver) = &saver {
                saver.end(ticking, &mut account);
            }
            account
        });
        let exported = exporter.map(Exporter::end);
        Ok((opened.close(account)?, exported))
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
            recipe: None,
            alone: None,
            successor: None,
        }
    };
    parts.iter().zip(0..).map(of).collect()
}
