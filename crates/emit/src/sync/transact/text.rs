//! The C around the programs where packets are transactions.

use std::collections::BTreeSet;
use std::fmt::Write;

use millrace_object::program::ObjectId;

use super::alone::OF_PROTOCOL;
use super::attempt::sets;
use crate::codegen::{Unit, offers, string};
use crate::headers;
use crate::sync::Test;
use crate::sync::lock::text::READ;

/// In `create`.
pub const CREATE: &str = "\tif (!config->shared || config->worker >= config->workers)\n\t\treturn -EINVAL;\n\tself->shared = config->shared;\n\tself->core = config->worker;\n\ttransact_create(&self->transact, &self->shared->lock, self->core);\n\tself->transact.whys = self->whys;\n";

/// The same for a profile.
pub const CREATE_PROFILED: &str = "\tif (!config->shared || config->worker >= config->workers)\n\t\treturn -EINVAL;\n\tself->shared = config->shared;\n\tself->core = config->worker;\n\ttransact_create(&self->transact, &self->shared->lock, self->core);\n\tself->transact.whys = self->whys;\n\tself->transact.conflicts = &self->conflicts;\n\tself->transact.what = conflict_what;\n";

/// The same where what packets read and wrote is noted.
pub const CREATE_LOGGED: &str = "\tif (!config->shared || config->worker >= config->workers)\n\t\treturn -EINVAL;\n\tself->shared = config->shared;\n\tself->core = config->worker;\n\ttransact_create(&self->transact, &self->shared->lock, self->core);\n\tself->transact.whys = self->whys;\n\tself->transact.log = &self->log;\n";

/// Takes all lines for a handler, at a place in the order of packets that run alone.
pub const HANDLER: &str = "\tlock_write(&self->shared->lock);\n\tpkt->core = self->core;\n\tpkt->commit = ++self->shared->lock.commits;\n";

/// The same, no earlier than any packet before it.
pub const HANDLER_CLOCK: &str = "\tlock_write(&self->shared->lock);\n\tpkt->core = self->core;\n\tpkt->commit = ++self->shared->lock.commits;\n\tpkt->time = lock_time_write(&self->shared->lock, pkt->time);\n";

/// The headers, with what a test has before them. `steps`: how many steps run alone.
/// `profile`: it is counted what they met.
pub fn includes(unit: &Unit, steps: usize, test: Option<Test>, profile: bool) -> String {
    let mut out = String::new();
    if profile {
        out.push_str("#define MR_PROFILE 1\n");
    }
    if let Some(test) = test {
        let _ = writeln!(out, "#define MR_POINT_SEED {}ull", test.seed);
        if test.dropped {
            out.push_str("#define MR_LOCK_DROPPED 1\n");
        }
        let kept = if test.log { "LOG" } else { "ORDER" };
        let _ = writeln!(out, "#define TRANSACT_{kept} 1\n#include \"sync/points.h\"");
    }
    let worded = unit.shared().filter(|(id, _)| unit.is_worded(*id));
    let worded: BTreeSet<&str> = worded.map(|(id, _)| unit.kind(id)).collect();
    for kind in worded
        .iter()
        .chain(worded.is_empty().then_some(&"shared_hash"))
    {
        let _ = writeln!(out, "#include \"state/{kind}.h\"");
    }
    // A worker's own, whose refreshes may have to be undone; and those that packets read beside others.
    let own = unit.objects().map(|(_, o)| o.kind.c);
    let mut kinds: BTreeSet<&str> = own.filter(|kind| headers::keeps(kind)).collect();
    let shared = unit.shared().filter(|(id, _)| !unit.is_worded(*id));
    kinds.extend(shared.map(|(_, o)| o.kind.c));
    for kind in kinds {
        let header = format!("sync/{kind}.h");
        if headers::text(&header).is_some() {
            let _ = writeln!(out, "#include \"{header}\"");
        }
    }
    if profile {
        out.push_str("static u32 conflict_what(const void *word, const struct transact *t);\n");
    }
    let _ = writeln!(out, "#define WHYS (TRANSACT_WHYS + {steps}u)");
    out
}

/// The functions of these objects' lookups whose words are in the sets, by name.
pub fn sets_declared(unit: &Unit, objects: &BTreeSet<ObjectId>) -> String {
    let declared = |id: &ObjectId| {
        let (kind, name) = (unit.kind(*id), sets(unit, *id));
        format!("static {kind}_sets_fn {name};\n")
    };
    objects.iter().map(declared).collect()
}

/// The same functions.
pub fn sets_defined(unit: &Unit, objects: &BTreeSet<ObjectId>) -> String {
    let defined = |id: &ObjectId| {
        let kind = unit.kind(*id).to_uppercase();
        format!("\n{kind}_SETS({}, &{})\n", sets(unit, *id), unit.shape(*id))
    };
    objects.iter().map(defined).collect()
}

/// Looks after shared objects: entries that rest or have expired.
pub fn ageing(unit: &Unit, clock: bool) -> String {
    let (mut maps, mut due, mut calls) = (String::new(), Vec::new(), String::new());
    for (id, object) in unit.shared() {
        let operands = unit.operands(id);
        if unit.is_worded(id) {
            let kind = unit.kind(id);
            let _ = writeln!(maps, "\t{kind}_settle(&self->transact, {operands}, now);");
        } else if object.expire_after > 0 && offers(object, "age") && offers(object, "due") {
            let kind = object.kind.c;
            due.push(format!("{kind}_due({operands}, now)"));
            let _ = writeln!(calls, "\t{kind}_age({operands}, now);");
        }
    }
    let later = match clock {
        true => "\tnow = lock_time_write(&self->shared->lock, now);\n",
        false => "",
    };
    if !calls.is_empty() {
        calls = format!(
            "\tif (mr_likely(!({})))\n\t\treturn;\n\tlock_read_to_write({READ});\n{later}{calls}\tlock_write_to_read({READ});\n",
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

/// What the host sees of transactions (`struct mr_transact`). `whys`: steps that run alone.
pub fn seen(unit: &Unit, whys: &[String], log: bool) -> String {
    let mut out = String::from(
        "
static const struct mr_transact_counts *transact_counts(struct mr_instance *self)
{
	return &self->transact.count;
}

static const u64 *transact_alone(struct mr_instance *self)
{
	return self->whys;
}
",
    );
    let mut accesses = "";
    if log {
        accesses = "\t.accesses = transact_accesses,\n";
        let mut cases = String::new();
        for (id, _) in unit.shared().filter(|(id, _)| unit.is_worded(*id)) {
            let (place, of) = (id.0, unit.member(id));
            let _ = writeln!(
                cases,
                "\tif (map == &self->shared->{of}.map)\n\t\treturn {place}u;"
            );
        }
        let _ = write!(
            out,
            "
static u32 transact_object(const void *map, const void *of)
{{
	const struct mr_instance *self = of;

	(void)map;
	(void)self;
{cases}	return UINT32_MAX;
}}

static void transact_accesses(struct mr_instance *self, mr_access_fn *fn, void *context)
{{
	accesses_hand(&self->log, transact_object, self, fn, context);
}}
"
        );
    }
    let said: String = (OF_PROTOCOL.iter().copied())
        .chain(whys.iter().map(String::as_str))
        .map(|why| format!("\t{},\n", string(why.as_bytes())))
        .collect();
    let _ = write!(
        out,
        "
static const char *const whys[] = {{
{said}}};

static const struct mr_transact transact = {{
	.whys = WHYS,
	.why = whys,
	.counts = transact_counts,
	.alone = transact_alone,
{accesses}}};
"
    );
    out
}
