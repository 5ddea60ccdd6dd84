//! Objects that ask for nothing: no packet changes them, or all changes commute and nothing depends on them. What depends
//! on an object is the model's to say (`millrace_model::observe`), and what commutes (`millrace_model::sums`).

use millrace_model::Model;
use millrace_model::model::{Object, Use};
use millrace_model::weaken::weak;
use millrace_object::program::{Role, StateObject};
use millrace_object::state::StateKind;

use super::Answer;

/// Why nothing has to meet, and an object is each core's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Apart {
    Unused,
    ReadOnly,
    WrittenAtStart,
    /// every CPU has its own by definition, and what a packet leaves there decides over none
    PerCpu,
    /// on purpose (`millrace_model::weaken`)
    Weakened,
}

impl Apart {
    pub fn reason(self) -> &'static str {
        match self {
            Self::Unused => "nothing touches it",
            Self::ReadOnly => "packets only read it",
            Self::WrittenAtStart => "it is written before the first packet and only read later",
            Self::PerCpu => {
                "it is per CPU already, and nothing that a packet leaves there decides over another"
            }
            Self::Weakened => "a rule is switched off",
        }
    }
}

/// Updates by packets that commute by addition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sum {
    /// numbers
    Numbers,
    /// numbers, and the entries that hold them
    Entries,
    /// records
    Records,
    /// numbers that every CPU has its own of by definition
    PerCpu,
    /// numbers that packets read too, as they were up to `staleness` before
    Stale,
}

impl Sum {
    pub fn reason(self) -> &'static str {
        match self {
            Self::Numbers => "packets only add to it and nothing depends on it",
            Self::Entries => {
                "packets only add to its numbers, and make entries to add to; nothing depends on either"
            }
            Self::Records => "packets only put records into it",
            Self::PerCpu => Apart::PerCpu.reason(),
            Self::Stale => {
                "packets change it by operators that commute, and its declaration lets them read it late (.staleness)"
            }
        }
    }
}

/// The answer for an object that asks for nothing; none for all others.
pub(crate) fn judge(model: &Model, object: usize, declared: &StateObject) -> Option<Answer> {
    let o = model.objects.get(object)?;
    let kind = declared.kind;
    let sum = |sum| {
        let words = o.parts.as_ref().map(|p| p.words.clone());
        Some(Answer::Additive(sum, words.unwrap_or_default()))
    };
    let apart = match o.usage {
        Use::Unused => Apart::Unused,
        Use::ReadOnly => Apart::ReadOnly,
        Use::WrittenAtStart => Apart::WrittenAtStart,
        Use::Additive if o.parts.as_ref().is_some_and(|p| p.inserts) => return sum(Sum::Entries),
        Use::Additive => return sum(Sum::Numbers),
        Use::ReadWrite if may_be_stale(model, o, declared) => return sum(Sum::Stale),
        Use::ReadWrite if kind.holds_records() && only_records(model, o, kind) => {
            return sum(Sum::Records);
        }
        Use::ReadWrite if kind.per_cpu => match &o.parts {
            Some(parts) if parts.words.is_empty() => Apart::PerCpu,
            Some(_) => return sum(Sum::PerCpu),
            None if weak("nothing-percpu") => Apart::Weakened,
            None => return None,
        },
        Use::ReadWrite => return None,
    };
    Some(Answer::Apart(apart))
}

/// The operation that reads numbers which all packets add to.
const READS: &str = "distributed_read";

/// Whether packets may read an object late. What happens without a packet has no worker of its own whose time would say how
/// late: it reads none, and what happens once on each worker adds to none.
fn may_be_stale(model: &Model, o: &Object, declared: &StateObject) -> bool {
    if declared.staleness == 0 || o.approximate {
        return false;
    }
    model.entries.iter().all(|entry| {
        let mut all = entry.paths.iter().flat_map(|p| &p.accesses);
        all.all(|a| {
            a.object != o.id
                || match entry.role {
                    Role::OnStart => true,
                    // What an expiry reads stands behind the packets that make its sets, without an answer (`expiring.rs`).
                    Role::Xdp | Role::OnPacket => a.operation != READS || a.answer.is_some(),
                    Role::Expiry => a.operation != READS,
                    Role::OnStop | Role::Every { .. } | Role::Timer => false,
                }
        })
    })
}

/// Operations that fill in a record that a call has reserved.
const FILLS: [&str; 3] = ["load", "store", "atomic"];

/// Whether packets see nothing of a ring but whether it had room, which is a capacity of each core's own.
pub(crate) fn only_records(model: &Model, o: &Object, kind: &StateKind) -> bool {
    if weak("nothing-records") {
        return true;
    }
    if o.approximate {
        let calls = || kind.calls.iter().copied().flatten();
        let puts = |operation| calls().any(|c| c.helper.name == operation && !c.does.looks());
        let mut all = model.entries.iter().flat_map(|e| &e.at_most);
        return all.all(|t| t.object != o.id || FILLS.contains(&t.operation) || puts(t.operation));
    }
    let seen = &o.observed;
    seen.bits.is_empty() && !seen.presence && !seen.other
}
