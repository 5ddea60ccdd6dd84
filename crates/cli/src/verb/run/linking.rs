//! Rows that run as one linked program (crates/link), which has one plan.

use std::time::Duration;

use clap::ValueEnum;
use millrace::Arrangement;
use millrace_chain::{Description, Element, Function, What};
use millrace_check::moment::Moment;
use millrace_place::Treatment;

use super::Run;
use super::chain;
use crate::failure::Failure;
use crate::screen;
use crate::strategy::Wished;

/// `--link auto` waits at most so long for the plan, in processor time; `--link yes` takes what it needs.
const AT_START: Duration = Duration::from_secs(10);

/// `--link`: whether the functions of a row become one program.
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

/// A row that was linked.
pub struct Linked {
    /// one function
    pub chain: Description,
    /// how it runs on several cores, if that is known already
    pub arranged: Option<Arrangement>,
}

impl Run {
    /// The row as one linked program: where `--link yes` asks for it; on one core over captures, where it needs no plan and is
    /// faster; and with `--link auto` on several cores where only that shards. In a row any packet goes to any worker, so that
    /// what packets write is under a lock.
    ///
    /// # Errors
    /// `--link yes`, and they cannot be linked.
    pub(super) fn linked(
        &self,
        described: &Description,
        in_kernel: bool,
    ) -> Result<Option<Linked>, Failure> {
        let asked = self.link == Some(Linking::Yes);
        // A model of all functions together takes long: a start waits for one only where that is asked for.
        let sharding = self.link == Some(Linking::Auto)
            && self.cores > 1
            && self.strategy == Wished::default();
        let at_once =
            self.link != Some(Linking::No) && self.cores == 1 && self.is_seen_at_its_end();
        if described.elements.len() < 2 || in_kernel || !(asked || sharding || at_once) {
            return Ok(None);
        }
        let unfit = match word(described) {
            Err(why) => Some(why),
            Ok(_) if self.routes.is_some() => {
                Some("a linked program looks no routes up".to_owned())
            }
            Ok(_) if self.program.is_some() => Some("--program is for one function".to_owned()),
            Ok(_) => None,
        };
        if let Some(why) = unfit {
            return match asked {
                true => Err(Failure::wrong(format!("--link yes: {why}")).help("leave it out")),
                false => Ok(None),
            };
        }
        let nf = word(described).unwrap_or_default();
        let name: Vec<_> = described.elements.iter().map(|e| e.name.as_str()).collect();
        let chain = Description {
            elements: vec![Element {
                name: name.join("+"),
                line: None,
                keys: Vec::new(),
                what: What::Function(Function {
                    word: nf.clone(),
                    ..Function::default()
                }),
            }],
            ..Description::default()
        };
        let found = match (asked, sharding) {
            (true, _) => {
                screen::err(&format!("{nf}: linked, as --link yes asks"));
                Ok(None)
            }
            (false, true) => self.sharded(&chain, &nf).map(Some),
            (false, false) => self.fits_in_one(described, &chain, &nf).map(|()| None),
        };
        match found {
            Ok(arranged) => Ok(Some(Linked { chain, arranged })),
            Err(why) => {
                if self.link == Some(Linking::Auto) {
                    screen::err(&format!("{nf}: not linked: {why}"));
                }
                Ok(None)
            }
        }
    }

    /// Whether nothing but the packets, the account and the exit status of the run is seen by others: it is over captures, and
    /// nobody changes its chain, asks for its counts by element, or takes up its state.
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
    }

    /// Whether the functions can be linked; why not.
    fn fits_in_one(
        &self,
        described: &Description,
        chain: &Description,
        nf: &str,
    ) -> Result<(), String> {
        let what = |e: Failure| e.what;
        let Some(element) = chain.elements.first() else {
            return Err("there is no function".to_owned());
        };
        let What::Function(asked) = &element.what else {
            return Err("a guest is no function".to_owned());
        };
        // Names that no element has are refused in the row's words.
        for given in [&self.set, &self.capacity] {
            for element in &described.elements {
                chain::of(described, element, given).map_err(what)?;
            }
        }
        let make = self.make(chain, element, asked).map_err(what)?;
        let found = millrace::find(nf).map_err(|e| e.what)?;
        found.read(&make).map_err(|e| e.what)?;
        screen::err(&format!(
            "{nf}: linked into one program, which is faster (--link no runs the row)"
        ));
        Ok(())
    }

    /// How the linked program runs on several cores; why it is of no use there.
    fn sharded(&self, chain: &Description, nf: &str) -> Result<Arrangement, String> {
        let (Some(element), what) = (chain.elements.first(), |e: Failure| e.what) else {
            return Err("there is no function".to_owned());
        };
        let What::Function(asked) = &element.what else {
            return Err("a guest is no function".to_owned());
        };
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
        let written = millrace::find(nf)
            .and_then(|found| found.read(&make))
            .map_err(what)?;
        // What nothing writes needs no owner: the row spreads as well.
        let state = |o: &millrace::object::program::StateObject| !o.read_only && !o.leads_on();
        if !written.program.objects.iter().any(state) {
            return Err(
                "the row has no state that packets write, so it spreads as it is".to_owned(),
            );
        }
        let arranged = self.arrange((chain, element), nf, &make, None);
        let arranged = arranged.map_err(|e| late(e.what))?;
        let sharded = arranged.plan.as_ref().map(|p| {
            let objects = p.objects.iter();
            objects.filter(|o| o.treatment == Treatment::Shard).count()
        });
        match sharded {
            Some(0) | None => Err(late("one plan shards nothing of it either".to_owned())),
            Some(n) => {
                screen::err(&format!(
                    "{nf}: linked into one program: its plan shards {n} objects, which a row would lock (--link no runs the row)"
                ));
                Ok(arranged)
            }
        }
    }
}

/// The word of a linked row.
fn word(described: &Description) -> Result<String, String> {
    if described.file.is_some() {
        return Err(
            "elements of a chain file are not linked: name the functions on the command line"
                .to_owned(),
        );
    }
    let mut words = Vec::new();
    for element in &described.elements {
        match &element.what {
            What::Guest(_) => return Err(format!("{} is a guest", element.name)),
            What::Function(function) => words.push(chain::path(described, &function.word)),
        }
    }
    Ok(words.join("+"))
}
