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
    /// they do on several cores where a plan that is found within 10 s of processor time shards what the row would lock
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
    /// The row as one linked program: where `--link yes` asks for it, and with `--link auto` on several cores where only that
    /// shards. In a row any packet goes to any worker, so that what packets write is under a lock.
    ///
    /// # Errors
    /// `--link yes`, and they cannot be linked.
    pub(super) fn linked(
        &self,
        described: &Description,
        in_kernel: bool,
    ) -> Result<Option<Linked>, Failure> {
        let asked = self.link == Some(Linking::Yes);
        // A model of all functions together takes long; who wants that at a start says so.
        let by_itself = self.link == Some(Linking::Auto)
            && self.cores > 1
            && self.strategy == Wished::default();
        if described.elements.len() < 2 || in_kernel || !(asked || by_itself) {
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
        if asked {
            screen::err(&format!("{nf}: linked, as --link yes asks"));
            return Ok(Some(Linked {
                chain,
                arranged: None,
            }));
        }
        match self.sharded(&chain, &nf) {
            Ok(arranged) => Ok(Some(Linked {
                chain,
                arranged: Some(arranged),
            })),
            Err(why) => {
                screen::err(&format!("{nf}: not linked: {why}"));
                Ok(None)
            }
        }
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
