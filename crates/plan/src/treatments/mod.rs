//! The chooser: which treatments an object can have, and which one it gets.
//!
//! Each treatment's file says where it is possible, by the rules' answer and the contract of the object's kind
//! (`millrace_object::state`), and what it adds to the rule's reason. Another treatment is another file, and a line in
//! [`TREATMENTS`]. A function from the list of those that are possible to one of them chooses ([`by_order`]); the steering
//! keeps the constraints of all objects that are separated, so that it may choose for each object by itself.

mod alone;
mod asked;
mod lock;
mod merge;
mod replicate;
mod shard;
mod spread;
mod transact;

use millrace_model::weaken::weak;
use millrace_object::program::{ObjectId, StateObject};
use millrace_place::Treatment;

use crate::plan::{ObjectPlan, Offer, Rule};
use crate::rules::{Answer, Said};

pub(crate) use asked::asked_for;
pub(crate) use shard::divides;
pub(crate) use transact::is_visited;

/// Every treatment, in order of preference: what needs no steering first, then what shares nothing, and what always serves
/// last. Transactions and replication come behind that: whether they are faster than the lock or one core, a measurement says.
const TREATMENTS: [Contract; 7] = [
    spread::CONTRACT,
    merge::CONTRACT,
    shard::CONTRACT,
    lock::CONTRACT,
    alone::CONTRACT,
    transact::CONTRACT,
    replicate::CONTRACT,
];

/// Where a treatment is possible, and its words.
struct Contract {
    treatment: Treatment,
    /// why it is impossible, where it is
    bar: fn(&Subject<'_>) -> Option<String>,
    /// the reason as the plan prints it, where it is taken
    reason: fn(&Subject<'_>) -> String,
}

/// The object to be treated.
pub(crate) struct Subject<'a> {
    pub declared: &'a StateObject,
    pub answer: &'a Answer,
    /// packets visit its entries one after another, in the order of their places
    pub visited: bool,
    /// why it cannot be replicated (R7)
    pub unreplicated: Option<String>,
}

impl Subject<'_> {
    /// Every treatment, the preferred one first, and why it is impossible if it is.
    fn offers(&self) -> Vec<Offer> {
        let offer = |of: &Contract| Offer {
            treatment: of.treatment,
            impossible: (of.bar)(self),
        };
        TREATMENTS.iter().map(offer).collect()
    }

    /// The plan for it, by the treatment that `pick` takes of those that are possible.
    pub fn planned(&self, id: ObjectId, pick: impl Fn(&[Treatment]) -> Treatment) -> ObjectPlan {
        let offers = self.offers();
        let taken = pick(&possible(&offers));
        let contract = TREATMENTS.iter().find(|c| c.treatment == taken);
        let reason = contract.map_or(self.answer.reason().to_owned(), |c| (c.reason)(self));
        let barred = self.answer.barred();
        let treatment = weakened(taken);
        ObjectPlan {
            id,
            name: self.declared.name.clone(),
            treatment,
            offers,
            rule: self.answer.rule(),
            reason,
            remedy: barred.map(|b| b.remedy.clone()),
            line: self.answer.said().and_then(|said| said.line.clone()),
            infeasible: barred.is_some_and(|b| b.proved),
            words: match (treatment, self.answer) {
                (Treatment::Merge, Answer::Additive(_, words)) => words.clone(),
                _ => Vec::new(),
            },
            asked: None,
            set: None,
        }
    }
}

fn possible(offers: &[Offer]) -> Vec<Treatment> {
    let open = offers.iter().filter(|o| o.impossible.is_none());
    open.map(|o| o.treatment).collect()
}

/// The one that is preferred: what is not written is copied, what adds up is merged, what separates is sharded, and what
/// does not is locked, or else on one core.
pub(crate) fn by_order(possible: &[Treatment]) -> Treatment {
    possible.first().copied().unwrap_or(Treatment::Alone)
}

/// Whether an object makes all packets one core's where nothing separates them.
pub(crate) fn is_vital(declared: &StateObject) -> bool {
    let nothing = Said::new(Rule::R4, String::new(), None).barred("", false);
    let subject = Subject {
        declared,
        answer: &Answer::Not(nothing),
        visited: false,
        unreplicated: None,
    };
    by_order(&possible(&subject.offers())) == Treatment::Alone
}

/// Treatments that are wrong on purpose (`millrace_model::weaken`): each rule, and what is spread where it is switched off.
const WEAK: [(&str, Treatment); 3] = [
    ("lock-spread", Treatment::Lock),
    ("alone-spread", Treatment::Alone),
    ("merge-spread", Treatment::Merge),
];

/// Whether any treatment is replaced by a wrong one.
pub(crate) fn any_weak() -> bool {
    WEAK.iter().any(|(rule, _)| weak(rule))
}

/// The treatment, or a wrong one where a rule is switched off that says so.
fn weakened(treatment: Treatment) -> Treatment {
    let mut all = WEAK.iter();
    match all.any(|(rule, from)| *from == treatment && weak(rule)) {
        true => Treatment::Spread,
        false => treatment,
    }
}
