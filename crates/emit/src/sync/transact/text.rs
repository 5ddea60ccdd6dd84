//! The C around the programs where packets are transactions.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::SHARED_MAP;
use crate::codegen::{Unit, offers};
use crate::headers;
use crate::sync::Test;
use crate::sync::lock::text::READ;

/// In `create`.
pub const CREATE: &str = "\tif (!config->shared || config->worker >= config->workers)\n\t\treturn -EINVAL;\n\tself->shared = config->shared;\n\tself->core = config->worker;\n\ttransact_create(&self->transact, &self->shared->lock, self->core);\n";

/// Takes all lines for a handler, at a place in the order of packets that run alone.
pub const HANDLER: &str = "\tlock_write(&self->shared->lock);\n\tpkt->core = self->core;\n\tpkt->commit = ++self->shared->lock.commits;\n";

/// The headers, with what a test has before them.
pub fn includes(unit: &Unit, test: Option<Test>) -> String {
    let mut out = String::new();
    if let Some(test) = test {
        let _ = writeln!(out, "#define MR_POINT_SEED {}ull", test.seed);
        if test.dropped {
            out.push_str("#define MR_LOCK_DROPPED 1\n");
        }
        out.push_str("#define TRANSACT_ORDER 1\n#include \"sync/points.h\"\n");
    }
    let _ = writeln!(out, "#include \"state/{SHARED_MAP}.h\"");
    // A worker's own, whose refreshes may have to be undone.
    let kinds: BTreeSet<&str> = unit.objects().map(|(_, o)| o.kind.c).collect();
    for kind in kinds.into_iter().filter(|kind| headers::keeps(kind)) {
        let _ = writeln!(out, "#include \"sync/{kind}.h\"");
    }
    out
}

/// Looks after shared objects: entries that rest or have expired.
pub fn ageing(unit: &Unit) -> String {
    let (mut maps, mut due, mut calls) = (String::new(), Vec::new(), String::new());
    for (id, object) in unit.shared() {
        let operands = unit.operands(id);
        if unit.kind(id) == SHARED_MAP {
            let _ = writeln!(
                maps,
                "\t{SHARED_MAP}_settle(&self->transact, {operands}, now);"
            );
        } else if object.expire_after > 0 && offers(object, "age") && offers(object, "due") {
            let kind = object.kind.c;
            due.push(format!("{kind}_due({operands}, now)"));
            let _ = writeln!(calls, "\t{kind}_age({operands}, now);");
        }
    }
    if !calls.is_empty() {
        calls = format!(
            "\tif (mr_likely(!({})))\n\t\treturn;\n\tlock_read_to_write({READ});\n{calls}\tlock_write_to_read({READ});\n",
            due.join(" || ")
        );
    }
    format!(
        "
/* Once a burst, at its first packet's time, by who has the line of its core. */
static void age_shared(struct mr_instance *self, u64 now)
{{
	(void)self;
	(void)now;
{maps}{calls}}}
"
    )
}
