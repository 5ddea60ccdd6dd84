//! Changes of the chain while it runs.
//!
//! One at a time; what is new is made first, beside the chain. Then all workers change it between two bursts
//! ([`millrace_dataplane::worker::change`]).

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use millrace_dataplane::classes::Classes;
use millrace_dataplane::mailbox::Desk;
use millrace_dataplane::module::ModuleError;
use millrace_dataplane::worker::change::{self, Change, Changed, Departed, Fresh, Part};
use millrace_dataplane::worker::meeting::{Meeting, Seat};
use millrace_topology::{End, Rearranged, Topology};
use serde_json::{Map, Value, json};

use super::{Result, Session, not_started};
use crate::chain::{self, Made, Maker};
use crate::elements::{self, Element, Elements};
use crate::pending::Pending;
use crate::protocol::{ChainRequest, Request};
use crate::trouble::Trouble;

/// Two changes at once would each arrange the chain as it was before the other.
pub(super) static ONE: Mutex<()> = Mutex::new(());

/// The chain as the worker has it.
pub(super) struct Seen {
    pub topology: Topology,
    pub list: Vec<Element>,
    pub now: u64,
}

impl Session {
    pub(super) fn chain(&self, request: &Request) -> Result<Value> {
        let wanted = request.chain.as_ref();
        let wanted = wanted.ok_or_else(|| Trouble::new("malformed", "chain needs a `chain`"))?;
        if wanted.op == "show" {
            let seen = self.seen()?;
            return Ok(chain::shown(&seen.list, &seen.topology));
        }
        let elements = &self.context.elements;
        let maker = elements.maker.get().ok_or_else(|| self.fixed())?.as_ref();
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let clustered = { elements.classes.get() }.is_some_and(|p| p.classes.elsewhere().is_some());
        if clustered && wanted.op != "replace" {
            return Err(Trouble::new(
                "refused",
                "a machine of a cluster runs one function: state of another one would not go to other machines with its buckets",
            )
            .help("replace the function by another version of it"));
        }
        self.changes()?;
        match wanted.op.as_str() {
            "attach" => self.attach(wanted, elements, maker),
            "detach" => {
                let seen = self.seen()?;
                let at = chain::place(&seen.list, needed(&wanted.element, "element")?)?;
                let arranged = arranged(&seen, seen.topology.remove(at))?;
                self.rearrange(&seen, arranged, None)
            }
            "replace" => self.replace(wanted, elements, maker),
            "move" => {
                let seen = self.seen()?;
                let at = chain::place(&seen.list, needed(&wanted.element, "element")?)?;
                let (end, before) = where_to(wanted, &seen)?;
                let arranged = arranged(&seen, seen.topology.shift(at, end, before))?;
                self.rearrange(&seen, arranged, None)
            }
            "reorder" => {
                let seen = self.seen()?;
                let order = wanted
                    .order
                    .iter()
                    .map(|name| chain::place(&seen.list, name));
                let order = order.collect::<Result<Vec<_>>>()?;
                let arranged = arranged(&seen, seen.topology.reorder(&order))?;
                self.rearrange(&seen, arranged, None)
            }
            other => Err(Trouble::new(
                "unknown",
                format!("there is nothing `{other}` to do with a chain"),
            )
            .help("there are show, attach, detach, replace, move and reorder")),
        }
    }

    fn attach(
        &self,
        wanted: &ChainRequest,
        elements: &Elements,
        maker: &dyn Maker,
    ) -> Result<Value> {
        let (list, asked) = (elements.list(), wanted.name.is_some());
        if let Some(name) = &wanted.name {
            chain::name(&list, name, true)?;
        }
        // What is in the way is said before anything is compiled.
        let seen = self.seen()?;
        where_to(wanted, &seen)?;
        let began = Instant::now();
        let made = maker.make(wanted)?;
        if !matches!(made.ports.len(), 0 | 2) {
            return Err(Trouble::new(
                "refused",
                format!("{} has {} ports, not two", made.link.name, made.ports.len()),
            )
            .help("connect it in a chain file (docs/chains.md)"));
        }
        let name = wanted
            .name
            .clone()
            .unwrap_or_else(|| made.link.name.clone());
        let name = chain::name(&list, &name, asked)?;
        let took = began.elapsed();
        // The list cannot have changed, since changes are made one at a time; time has gone on.
        let seen = self.seen()?;
        let (end, before) = where_to(wanted, &seen)?;
        let arranged = arranged(&seen, seen.topology.insert(end, before))?;
        let new = self.fresh(made, name, &seen)?;
        self.rearrange(&seen, arranged, Some((new, took, Keep::default())))
    }

    fn replace(
        &self,
        wanted: &ChainRequest,
        elements: &Elements,
        maker: &dyn Maker,
    ) -> Result<Value> {
        let list = elements.list();
        let old = needed(&wanted.element, "element")?;
        let at = chain::place(&list, old)?;
        let began = Instant::now();
        let made = maker.make(wanted)?;
        let others: Vec<_> = list.iter().filter(|e| e.name != old).cloned().collect();
        let asked = wanted.name.is_some();
        let name = chain::name(&others, wanted.name.as_deref().unwrap_or(old), asked)?;
        let took = began.elapsed();
        let seen = self.seen()?;
        let own = seen.topology.ports(at).len();
        let ports = match made.ports.len() {
            // It has as many as are connected.
            0 if made.exposed.is_some() => own,
            0 => 2,
            ports => ports,
        };
        let arranged = arranged(&seen, seen.topology.replace(at, ports))?;
        let before = seen.list.get(at).and_then(|e| e.exposed.as_deref());
        let keep = match (before, made.exposed.as_deref()) {
            (Some(before), Some(now)) if !wanted.anew => {
                let pairs = chain::kept(before, now).whole()?;
                let name = |(old, _): &(usize, usize)| {
                    before
                        .info(*old)
                        .map_or_else(|_| String::new(), |o| o.name.clone())
                };
                Keep {
                    names: pairs.iter().map(name).collect(),
                    pairs,
                }
            }
            _ => Keep::default(),
        };
        let new = self.fresh(made, name, &seen)?;
        self.rearrange(&seen, arranged, Some((new, took, keep)))
    }

    /// The state of a new element, made beside the chain.
    pub(super) fn fresh(
        &self,
        mut made: Made,
        name: String,
        seen: &Seen,
    ) -> Result<(Fresh, Element)> {
        made.link.name.clone_from(&name);
        let classes = self.context.elements.classes.get();
        let moved = classes.is_some_and(|parted| parted.classes.buckets().is_some());
        if moved && made.link.has_owned() {
            return Err(Trouble::new(
                "refused",
                format!("{name}: contents at start of an object that is divided over the workers are for those that had its packets at the start of the run, and buckets may have moved since"),
            )
            .help("nothing was changed; leave the contents out, or start the function as a run of its own"));
        }
        let id = self.first(|desk| desk.chain.as_ref().map(|chain| chain.number()))?;
        let id = id.ok_or_else(|| self.fixed())?;
        let guests = elements::hosted(&made.link);
        let workers = self.context.mailboxes.len();
        let fresh = Fresh::make(&made.link, id, seen.now, workers).map_err(|e| {
            Trouble::new("refused", e)
                .help("declare a smaller capacity, or free memory on this machine")
        })?;
        let ports = match made.ports.len() {
            0 => vec!["0".to_owned(), "1".to_owned()],
            _ => made.ports,
        };
        let element = Element {
            id,
            name,
            ports,
            exposed: made.exposed,
            guests,
            recipe: None,
            alone: Some(made.alone),
            successor: made.successor,
        };
        Ok((fresh, element))
    }

    fn fixed(&self) -> Trouble {
        Trouble::new("refused", "the chain of this run cannot be changed").help(
            "a chain can be that serves live ports, or one worker, of several elements or from a chain file (docs/chains.md)",
        )
    }

    /// Names the function that has the place of the one whose state goes with buckets, if that is replaced in this chain that is to be.
    pub(super) fn succession(&self, list: &[Element]) -> Succession<'_> {
        let parted = self.context.elements.classes.get();
        let classes = parted.map(|parted| &*parted.classes);
        let classes = classes.filter(|classes| classes.buckets().is_some());
        let own = |classes: &&Classes| !list.iter().any(|e| classes.are_of(e.id));
        let next = list.iter().find(|e| e.successor.is_some());
        let next = classes.filter(own).zip(next);
        if let Some((classes, next)) = next {
            classes.expect(next.successor.clone());
        }
        Succession(next.map(|(classes, next)| (classes, next.id)))
    }

    /// Whether the chain can be changed.
    pub(super) fn changes(&self) -> Result<()> {
        let replicated = self.first(|desk| {
            desk.chain
                .as_ref()
                .is_some_and(|chain| chain.is_replicated())
        })?;
        match replicated {
            true => Err(Trouble::new(
                "refused",
                "the chain cannot be changed: a function in it is replicated, and its replicas follow the rows that a sequencer was set up at \
                 start to make",
            )
            .help("restart the run with --state FOLDER, which keeps all of its state; or run it with another --strategy")),
            false => Ok(()),
        }
    }

    /// Whether these can be elements of one chain: packets have to come to those whose state is divided as they arrived, since by that they
    /// have their workers.
    pub(super) fn beside(&self, list: &[Element]) -> Result<()> {
        let maker = self.context.elements.maker.get();
        let whole = |element: &Element| {
            let started = || maker.and_then(|maker| maker.alone(element.id));
            element.alone.clone().unwrap_or_else(started)
        };
        for divided in list.iter().filter(|e| e.divided()) {
            let others = list.iter().filter(|e| e.name != divided.name);
            for other in others {
                if let Some(why) = whole(other) {
                    return Err(Trouble::new(
                        "refused",
                        format!(
                            "{} cannot be in one chain with {}, whose state is divided over the workers by what packets are as they arrive: {why}",
                            other.name, divided.name
                        ),
                    )
                    .help("nothing was changed; start them as one chain, whose state is under a lock or which is linked (docs/chains.md)"));
                }
            }
        }
        Ok(())
    }

    /// Has all workers change the chain at one moment, each its part; what each says, in their order.
    pub(super) fn meet<T: Send + 'static>(
        &self,
        change: Change,
        job: impl FnMut(&mut Desk<'_>, Part, Seat) -> T + Clone + Send + 'static,
    ) -> Result<Vec<T>> {
        let mailboxes = &self.context.mailboxes;
        let workers = mailboxes.len();
        if workers > 1 {
            // One that sleeps would be waited for while the packets of the others wait.
            self.each(|desk| desk.stay_awake())?;
        }
        let parts = change.parts(workers).into_iter().zip(Meeting::of(workers));
        let jobs = parts.map(|own| {
            let (mut own, mut job) = (Some(own), job.clone());
            move |desk: &mut Desk<'_>| {
                let (part, seat) = own.take()?;
                Some(job(desk, part, seat))
            }
        });
        let posted = Pending::together(mailboxes, jobs);
        // All are waited for: what one has in its hands is no other worker's to drop.
        let done: Vec<Result<Option<T>>> = posted.into_iter().map(|p| p?.wait()).collect();
        let done = done.into_iter().collect::<Result<Vec<_>>>()?;
        let done: Option<Vec<T>> = done.into_iter().collect();
        done.ok_or_else(crate::pending::ended)
    }

    /// The chain now.
    pub(super) fn seen(&self) -> Result<Seen> {
        let seen = self.first(|desk| {
            let now = desk.now;
            let chain = desk.chain.as_ref();
            chain.map(|c| (c.topology().clone(), c.elements(), now))
        })?;
        let changes = self.context.elements.maker.get().is_some();
        let (topology, ids, now) = seen.ok_or_else(|| match changes {
            true => not_started(),
            false => self.fixed(),
        })?;
        let all = self.context.elements.list();
        let of = |id: &u64| all.iter().find(|e| e.id == *id).cloned();
        let list: Vec<_> = ids.iter().filter_map(of).collect();
        if list.len() != ids.len() {
            return Err(self.fixed());
        }
        Ok(Seen {
            topology,
            list,
            now,
        })
    }

    /// Has the worker change the chain, and what was taken out end.
    fn rearrange(
        &self,
        seen: &Seen,
        arranged: Rearranged,
        new: Option<((Fresh, Element), std::time::Duration, Keep)>,
    ) -> Result<Value> {
        let was = arranged.was.clone();
        let (mut fresh, mut element, mut keep, mut took) = (None, None, Keep::default(), None);
        if let Some(((made, shown), time, kept)) = new {
            (fresh, element, keep, took) = (Some(made), Some(shown), kept, Some(time));
        }
        let stays = |at: &usize| was.contains(&Some(*at));
        let goes = (0..seen.list.len()).find(|at| !stays(at));
        let kept = goes
            .filter(|_| !keep.pairs.is_empty())
            .map(|from| change::Keep {
                from,
                to: 0,
                objects: std::mem::take(&mut keep.pairs),
            });
        let change = Change {
            arranged,
            fresh: fresh.into_iter().collect(),
            keep: kept.into_iter().collect(),
        };
        let name = element.as_ref().map(|e: &Element| e.name.clone());
        let of = |place: &Option<usize>| match place {
            Some(at) => seen.list.get(*at).cloned(),
            None => element.take(),
        };
        let list: Vec<_> = was.iter().filter_map(of).collect();
        self.beside(&list)?;
        let succession = self.succession(&list);
        let done = self.meet(change, |desk, part, seat| {
            let began = Instant::now();
            let chain = desk.chain.as_mut();
            let changed = chain.map(|chain| chain.change(part, seat));
            (changed, began.elapsed())
        })?;
        let paused = done.iter().map(|(_, paused)| *paused).max();
        let changed = done.into_iter().map(|(changed, _)| changed).collect();
        let changed: Option<Vec<_>> = changed;
        let Changed { departed, kept } =
            together(changed.ok_or_else(|| self.fixed())?).map_err(|why| {
                Trouble::new("refused", why).help("nothing was changed; --anew keeps no state")
            })?;
        succession.done();
        let paused = paused.unwrap_or_default();
        self.context.elements.now(list.clone());
        let facts = ended(departed);
        let mut answer = Map::new();
        let names: Vec<_> = list.iter().map(|e| e.name.as_str()).collect();
        answer.insert("elements".into(), json!(names));
        answer.insert("element".into(), json!(name));
        answer.insert("made_ms".into(), json!(took.map(|t| t.as_secs_f64() * 1e3)));
        answer.insert("paused_us".into(), json!(paused.as_secs_f64() * 1e6));
        let pairs = keep.names.iter().zip(kept.iter().flatten());
        let pairs = pairs.map(|(object, entries)| json!({ "object": object, "entries": entries }));
        answer.insert("kept".into(), pairs.collect());
        answer.insert("facts".into(), json!(facts));
        Ok(Value::Object(answer))
    }
}

/// A function that is about to have the place of another one, whose state goes with buckets; it has not where this is dropped.
pub(super) struct Succession<'a>(Option<(&'a Classes, u64)>);

impl Succession<'_> {
    /// It has.
    pub fn done(mut self) {
        if let Some((classes, element)) = self.0.take() {
            classes.succeed(element);
        }
    }
}

impl Drop for Succession<'_> {
    fn drop(&mut self) {
        if let Some((classes, _)) = self.0 {
            classes.expect(None);
        }
    }
}

/// State that a replacement keeps.
#[derive(Default)]
struct Keep {
    pairs: Vec<(usize, usize)>,
    names: Vec<String>,
}

/// What workers have changed, as one: entries of parts are added up. Where they have not, why: what was to come in ends here, and not while
/// packets wait.
pub(super) fn together(
    done: Vec<std::result::Result<Changed, Box<change::Refused>>>,
) -> std::result::Result<Changed, ModuleError> {
    let (mut whole, mut why) = (Changed::default(), None);
    for done in done {
        match done {
            Ok(Changed { departed, kept }) => {
                whole.departed.extend(departed);
                whole
                    .kept
                    .resize(whole.kept.len().max(kept.len()), Vec::new());
                for (all, own) in whole.kept.iter_mut().zip(kept) {
                    all.resize(all.len().max(own.len()), 0);
                    all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
                }
            }
            Err(refused) => match &why {
                Some((_, false)) => {}
                _ => why = Some((refused.why, refused.elsewhere)),
            },
        }
    }
    match why {
        Some((why, _)) => Err(why),
        None => Ok(whole),
    }
}

/// Has elements end, on a thread of their own: one that runs a guest carries a system call filter from then on.
pub(super) fn ended(departed: Vec<Departed>) -> Vec<String> {
    let names: BTreeSet<_> = departed.iter().map(|d| d.name().to_owned()).collect();
    let names: Vec<_> = names.into_iter().collect();
    // By element, and by worker within it.
    let mut elements: Vec<(u64, Vec<Departed>)> = Vec::new();
    for part in departed {
        let id = part.id();
        match elements.iter_mut().find(|(of, _)| *of == id) {
            Some((_, parts)) => parts.push(part),
            None => elements.push((id, vec![part])),
        }
    }
    let finish = move || {
        let facts = elements.into_iter().map(|(_, parts)| change::finish(parts));
        facts.flatten().collect::<Vec<_>>()
    };
    let thread = std::thread::Builder::new().name("leaving".into());
    match thread.spawn(finish) {
        Ok(thread) => thread.join().unwrap_or_default(),
        // They were dropped, which ends them too.
        Err(error) => vec![format!("{}: ended by force: {error}", names.join(", "))],
    }
}

/// Where an element is to be put: a port, and whether it comes in front of it. At the end unless said otherwise.
fn where_to(wanted: &ChainRequest, seen: &Seen) -> Result<(End, bool)> {
    match (&wanted.before, &wanted.after) {
        (Some(_), Some(_)) => {
            Err(Trouble::new("malformed", "both before and after").help("name one of the two"))
        }
        (Some(text), None) => Ok((chain::end(&seen.list, &seen.topology, text, 0)?, true)),
        (None, Some(text)) => Ok((chain::end(&seen.list, &seen.topology, text, 1)?, false)),
        (None, None) => {
            let last = seen.topology.entries().len().saturating_sub(1);
            Ok((End::Out(last as u32), true))
        }
    }
}

fn arranged(
    seen: &Seen,
    done: std::result::Result<Rearranged, millrace_topology::TopologyError>,
) -> Result<Rearranged> {
    done.map_err(|e| chain::wrong(&e, &seen.list))
}

fn needed<'a>(member: &'a Option<String>, name: &str) -> Result<&'a str> {
    let text = member.as_deref();
    text.ok_or_else(|| Trouble::new("malformed", format!("chain needs an `{name}`")))
}
