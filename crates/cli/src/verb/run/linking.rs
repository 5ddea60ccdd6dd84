//! Chains whose elements run as linked programs (crates/link), as far as they can be linked.

use std::time::Duration;

use clap::ValueEnum;
use millrace::{Apart, Arrangement, Parts, Source};
use millrace_chain::{Description, Element, Function, What};
use millrace_check::moment::Moment;
use millrace_place::Treatment;

use super::Run;
use crate::failure::Failure;
use crate::notify::Notify;
use crate::screen;
use crate::strategy::Wished;

/// `--link auto` waits at most so long for the plan, in processor time; `--link yes` takes what it needs.
const AT_START: Duration = Duration::from_secs(10);

/// `--link`: whether connected functions become one program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Linking {
    /// they do
    Yes,
    /// they do where that is faster: on one core over captures, on several where a plan that is found within 10 s of
    /// processor time shards what the row would lock; if not, it says why
    Auto,
    /// they run one after the other
    No,
}

/// A chain some of whose elements were linked.
pub struct Linked {
    /// with one function in the place of several
    pub chain: Description,
    /// how it runs on several cores, if it is one function and that is known already
    pub arranged: Option<Arrangement>,
}

impl Run {
    /// The chain with the largest groups of its elements as linked programs: where `--link yes` asks for it; on one core over captures,
    /// where that needs no plan and is faster; and on several cores, where one program is all of it and only that
    /// shards, with `--link auto`, or over captures if its model is kept from a plan of before. In a chain any packet goes to any worker, so that what
    /// packets write is under a lock.
    ///
    /// # Errors
    /// `--link yes`, and nothing can be linked.
    pub(super) fn linked(
        &self,
        described: &Description,
        in_kernel: bool,
    ) -> Result<Option<Linked>, Failure> {
        let asked = self.link == Some(Linking::Yes);
        // A model of all functions together takes long: a start waits for one only where that is asked for.
        let auto = self.link == Some(Linking::Auto);
        let sharding = (auto || self.link.is_none() && self.is_seen_at_its_end())
            && self.cores > 1
            && self.strategy == Wished::default();
        let at_once =
            self.link != Some(Linking::No) && self.cores == 1 && self.is_seen_at_its_end();
        if described.elements.len() < 2 || in_kernel || !(asked || sharding || at_once) {
            return Ok(None);
        }
        // What is for one function alone is refused for the chain.
        if self.routes.is_some() || self.program.is_some() {
            return Ok(None);
        }
        let told = asked || auto;
        let make = |element: &Element, function: &Function| self.make(described, element, function);
        let parts = match Parts::of(described, asked, make) {
            Ok(parts) => parts,
            // What is wrong with an element by itself the chain says, too, where it stands.
            Err(why) => {
                if told {
                    screen::err(&format!("not linked: {why}"));
                }
                return Ok(None);
            }
        };
        if parts.linked.is_empty() && parts.joined.is_empty() {
            let why = parts.apart.iter().map(|apart| apart.why.as_str()).next();
            let why = why.unwrap_or("none of its elements are connected");
            if asked {
                let failure = Failure::no(format!("--link yes: {why}"));
                return Err(failure.help("run them one after the other: --link no"));
            }
            if told {
                screen::err(&format!("not linked: {why}"));
            }
            return Ok(None);
        }
        let chain = parts.chain(described);
        let one = match chain.elements.as_slice() {
            [one] => Some(one),
            _ => None,
        };
        let arranged = match (one, sharding && !asked) {
            (Some(one), true) => match self.sharded(&chain, one) {
                Ok(arranged) => Some(arranged),
                Err(Unlinked::NotFollowed(nf)) => {
                    screen::err(&format!(
                        "{}: one program may shard what the row locks: `millrace plan {nf} --cores {}` finds out, and runs after it take it (--link auto waits up to {} s for the plan)",
                        one.name,
                        self.cores,
                        AT_START.as_secs()
                    ));
                    return Ok(None);
                }
                Err(Unlinked::Why(why)) => {
                    if told {
                        screen::err(&format!("{}: not linked: {why}", one.name));
                    }
                    return Ok(None);
                }
            },
            (None, true) if !told => return Ok(None),
            (None, true) => {
                for apart in &parts.apart {
                    screen::err(&apart_text(apart));
                }
                screen::err(
                    "not linked: on several cores that is of use where one program is all of the chain; --link yes links the rest",
                );
                return Ok(None);
            }
            (_, false) => None,
        };
        let joined = { parts.joined.iter() }.map(|merged| (merged, "synthesised as one function"));
        let linked = { parts.linked.iter() }.map(|merged| (merged, "linked into one program"));
        for (merged, what) in joined.chain(linked).filter(|_| arranged.is_none()) {
            let name = &merged.element.name;
            let why = match asked {
                true => "as --link yes asks",
                false => "which is faster (--link no runs them one after the other)",
            };
            screen::err(&format!("{name}: {what}, {why}"));
        }
        parts.passed.iter().for_each(|why| screen::err(why));
        for apart in parts.apart.iter().filter(|_| told) {
            screen::err(&apart_text(apart));
        }
        for Apart { pair, why } in parts.several.iter().filter(|_| told) {
            let (one, other) = pair;
            screen::err(&format!(
                "{one} and {other} are not synthesised as one: {why}"
            ));
        }
        Ok(Some(Linked { chain, arranged }))
    }

    /// Whether nothing but the packets, the account and the exit status of the run is seen by others: it is over captures, and
    /// nobody changes its chain, asks for its counts by element, takes up its state, or waits to be told of its progress.
    fn is_seen_at_its_end(&self) -> bool {
        !self.between().live()
            && !self.outside.is_named()
            && self.state.state.is_none()
            && self.metrics.is_none()
            && self.records.is_none()
            && self.fates.is_none()
            && self.export.is_none()
            && self.offload.is_none()
            && self.classes.is_none()
            && self.balance.is_none()
            && self.steer.is_empty()
            && self.trace.is_none()
            && !self.profile
            && !Notify::is_asked()
    }

    /// How the linked program runs on several cores; why it is of no use there.
    fn sharded(&self, chain: &Description, element: &Element) -> Result<Arrangement, Unlinked> {
        let what = |e: Failure| e.what;
        let What::Function(asked) = &element.what else {
            return Err("a guest is no function".to_owned().into());
        };
        let nf = asked.word.as_str();
        let mut make = self.make(chain, element, asked).map_err(what)?;
        make.budgets.time = make.budgets.time.min(AT_START);
        make.budget = None;
        let began = Moment::now();
        let late = |why: String| match began.elapsed() >= AT_START {
            true => format!(
                "whether one plan shards it was not found out within {} s; --link yes takes the time it needs",
                AT_START.as_secs()
            ),
            false => why,
        };
        let found = millrace::find(nf).map_err(what)?;
        let one = !matches!(found.source, Source::Linked(_));
        let written = found.read(&make).map_err(what)?;
        // What nothing writes needs no owner: the row spreads as well.
        let state = |o: &millrace::object::program::StateObject| !o.read_only && !o.leads_on();
        if !written.program.objects.iter().any(state) {
            let why = "the row has no state that packets write, so it spreads as it is";
            return Err(why.to_owned().into());
        }
        if self.link.is_none() {
            let proved = written.check(make.begin()).map_err(|e| e.what)?;
            if !proved.is_followed() {
                return Err(Unlinked::NotFollowed(nf.to_owned()));
            }
        }
        let arranged = self.arrange((chain, element), nf, &make, None);
        let arranged = arranged.map_err(|e| late(e.what))?;
        let sharded = arranged.plan.as_ref().map(|p| {
            let objects = p.objects.iter();
            objects.filter(|o| o.treatment == Treatment::Shard).count()
        });
        match sharded {
            Some(0) | None => Err(late("one plan shards nothing of it either".to_owned()).into()),
            Some(n) => {
                let what = match one {
                    true => "synthesised as one function",
                    false => "linked into one program",
                };
                screen::err(&format!(
                    "{}: {what}: its plan shards {n} objects, which a row would lock (--link no runs the row)",
                    element.name
                ));
                Ok(arranged)
            }
        }
    }
}

/// Why a row stays one on several cores.
enum Unlinked {
    /// its model has not been followed yet: its word
    NotFollowed(String),
    /// something else
    Why(String),
}

impl From<String> for Unlinked {
    fn from(why: String) -> Self {
        Self::Why(why)
    }
}

/// Why two elements are not linked, in a line.
fn apart_text(apart: &Apart) -> String {
    let (one, other) = &apart.pair;
    format!("{one} and {other} are not linked: {}", apart.why)
}
