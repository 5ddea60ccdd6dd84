//! From how objects stand on workers to how they are compared.

use millrace_dataplane::Share;
use millrace_object::program::Program;
use millrace_object::state::Addressing;

use crate::deal::Held;

/// How each object of the program is held that stands so on the workers; none of these is one worker's.
#[must_use]
pub fn held(shares: &[Share], program: &Program) -> Vec<Held> {
    let objects = program.objects.iter().enumerate();
    let held = objects.map(|(i, object)| {
        let records = object.kind.holds_records();
        let sequence = object.kind.addressing == Addressing::None;
        match shares.get(i).unwrap_or(&Share::Copied) {
            Share::Locked if records => Held::Private(
                "whose packet left a record is not told by a buffer that workers share".into(),
            ),
            Share::Locked if sequence => Held::Private("what it holds has no keys".into()),
            Share::Locked => Held::Shared,
            _ if records => Held::Private("its records are compared packet by packet".into()),
            Share::Divided { .. } | Share::Merged { .. } if sequence => {
                Held::Private("what it holds has no keys".into())
            }
            Share::Merged { words, .. } => Held::Merged(words.to_vec()),
            Share::Own { .. } => Held::Private("each CPU has values of its own".into()),
            Share::Copied => Held::Replicated,
            Share::Divided { .. } => Held::Divided,
        }
    });
    held.collect()
}
