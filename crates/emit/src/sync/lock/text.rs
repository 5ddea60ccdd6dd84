//! The C around the programs where workers share state.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::codegen::{Unit, offers};
use crate::headers;
use crate::sync::Test;

/// In `create`.
pub const CREATE: &str = "\tif (!config->shared || config->worker >= config->workers)\n\t\treturn -EINVAL;\n\tself->shared = config->shared;\n\tself->core = config->worker;\n";

/// The lock and this worker's line, as arguments.
pub const READ: &str = "&self->shared->lock, self->core";

/// Takes all lines of the lock.
pub const WRITE: &str = "\tlock_write(&self->shared->lock);\n";

/// Releases them.
pub const WRITE_END: &str = "\tlock_write_end(&self->shared->lock);\n";

/// Takes all lines for a handler, at a time and a place in the order of commits.
pub const HANDLER: &str = "\tlock_write(&self->shared->lock);\n\tpkt->core = self->core;\n\tpkt->commit = lock_commit_write(&self->shared->lock);\n\tpkt->time = lock_time_write(&self->shared->lock, pkt->time);\n";

/// The headers, with what a test has before them. `undo`: readers keep what they overwrite;
/// `profile`: it is counted where they became writers.
pub fn includes(unit: &Unit, undo: bool, test: Option<Test>, profile: bool) -> String {
    let mut out = String::new();
    if profile {
        out.push_str("#define MR_PROFILE 1\n#include \"sync/conflicts.h\"\n");
    }
    if let Some(test) = test {
        let _ = writeln!(out, "#define MR_POINT_SEED {}ull", test.seed);
        if test.dropped {
            out.push_str("#define MR_LOCK_DROPPED 1\n");
        }
        out.push_str("#include \"sync/points.h\"\n");
    }
    out.push_str("#include \"sync/lock.h\"\n");
    if undo {
        out.push_str("#include \"sync/undo.h\"\n");
    }
    let mut kinds: BTreeSet<&str> = unit.shared().map(|(_, o)| o.kind.c).collect();
    if undo {
        // A worker's own, whose refreshes may have to be undone.
        let all = unit.objects().map(|(_, o)| o.kind.c);
        kinds.extend(all.filter(|kind| headers::keeps(kind)));
    }
    for kind in kinds {
        let header = format!("sync/{kind}.h");
        if headers::text(&header).is_some() {
            let _ = writeln!(out, "#include \"{header}\"");
        }
    }
    out
}

/// Reclaims what has expired of shared objects, if a reader sees that there is something; nothing else.
pub fn ageing(unit: &Unit) -> String {
    let (mut due, mut calls) = (Vec::new(), String::new());
    for (id, object) in unit.shared() {
        if object.expire_after > 0 && offers(object, "age") && offers(object, "due") {
            let (kind, operands) = (object.kind.c, unit.operands(id));
            due.push(format!("{kind}_due({operands}, now)"));
            let _ = writeln!(calls, "\t{kind}_age({operands}, now);");
        }
    }
    if calls.is_empty() {
        return String::new();
    }
    format!(
        "
/* Once a burst, at its first packet's time, by a reader. */
static void age_shared(struct mr_instance *self, u64 now)
{{
	if (mr_likely(!({})))
		return;
	lock_read_to_write({READ});
	now = lock_time_write(&self->shared->lock, now);
{calls}	lock_write_to_read({READ});
}}
",
        due.join(" || ")
    )
}
