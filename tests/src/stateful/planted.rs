//! Generated programs that may notice a switched-off rule of the plan; the others need not be run for that.

use super::case::{Action, Amount, Block, Case, Dialect, Key, Kind, Leak, Mismatch, Source};

/// Whether a case may notice that `rule` (one of `millrace_model::weaken::RULES`) is switched off.
#[must_use]
pub fn may_notice(case: &Case, rule: &str) -> bool {
    let program = &case.program;
    let leaks = |all: &[Leak]| {
        program.blocks.iter().any(|b| {
            let same = |l: &Leak| std::mem::discriminant(l) == std::mem::discriminant(&b.leak);
            all.iter().any(same) && action(&b.source).is_some_and(shows)
        })
    };
    let acts = |all: &[Action]| {
        let mut actions = program.blocks.iter().filter_map(|b| action(&b.source));
        actions.any(|a| all.contains(&a))
    };
    let kinds = |is: &dyn Fn(Kind) -> bool| program.objects.iter().any(|o| is(o.kind));
    let percpu = kinds(&Kind::percpu);
    // What is made of maps of maps is refused by run, whatever the plan says.
    if kinds(&|k| k == Kind::Nested) {
        return false;
    }
    // Numbers of an earlier block that is a counter.
    let counted = |n: usize| {
        let block = program.blocks.get(n);
        block.is_some_and(|b| action(&b.source).is_some_and(shows))
    };
    let keys = |is: &dyn Fn(Key) -> bool| {
        program
            .blocks
            .iter()
            .filter_map(|b| super::render::key_of(&b.source))
            .any(is)
    };
    let above = Leak::Above(0);
    let handlers = program.dialect == Dialect::Handlers;
    match rule {
        "observe-guard" => leaks(&[Leak::Odd, above, Leak::RecordWhether]),
        "observe-told" => leaks(&[
            Leak::Csum,
            Leak::Text,
            Leak::Number,
            Leak::Compare,
            Leak::RecordLength,
            Leak::PerfLength,
        ]),
        "observe-borders" => leaks(&[Leak::Tail, Leak::Head]),
        "observe-byte" => leaks(&[Leak::Byte]),
        "observe-place" => leaks(&[Leak::Place]),
        "observe-target" => !handlers && leaks(&[Leak::Port]),
        "observe-verdict" => leaks(&[Leak::Verdict]) || handlers && leaks(&[Leak::Port]),
        "observe-key" => keys(&|k| matches!(k, Key::Of(n) if counted(n))),
        "observe-stored" => program.blocks.iter().any(|b| match &b.source {
            Source::Value { amount, .. } => matches!(amount, Amount::Of(n) if counted(*n)),
            _ => false,
        }),
        "sums-observed" => acts(&[Action::Count, Action::Fetch]) && !percpu,
        "sums-own" => acts(&[Action::AddOwn, Action::AtomicOwn]) && !percpu,
        "nothing-records" => {
            let query = |b: &Block| b.source == Source::RingQuery && b.leak != Leak::None;
            program.blocks.iter().any(query)
        }
        "nothing-percpu" | "alone-spread" => percpu && acts(&[Action::Count, Action::Max]),
        "derived" => {
            let apart = |s: &Source| {
                matches!(
                    s,
                    Source::Through {
                        together: false,
                        ..
                    }
                )
            };
            program.blocks.iter().any(|b| apart(&b.source))
        }
        "inert-borders" => {
            let cut = |s: &Source| {
                matches!(
                    s,
                    Source::Leased {
                        mismatch: Mismatch::Cut,
                        ..
                    }
                )
            };
            program.blocks.iter().any(|b| cut(&b.source))
        }
        "merge-spread" => acts(&[Action::Add, Action::AtomicAdd]) && !percpu,
        _ => !percpu,
    }
}

fn action(source: &Source) -> Option<Action> {
    match source {
        Source::Value { action, .. } => Some(*action),
        _ => None,
    }
}

/// Whether a value is only added to, and its number shows where it leaks.
fn shows(action: Action) -> bool {
    matches!(action, Action::Count | Action::Fetch)
}
