//! The C around the programs where workers share state.

use std::collections::BTreeSet;
use std::fmt::Write;

use millrace_object::Program;
use millrace_object::program::ObjectId;

use crate::alone::{Names, offers};
use crate::headers;

/// Members of the instance.
pub const MEMBERS: &str =
    "\tstruct mr_shared *shared;\n\tu32 core; /* which of the workers that share it */\n";

/// A member of the instance, where readers keep what they overwrite.
pub const UNDO: &str = "\tstruct undo undo; /* of the packet at hand */\n";

/// In `create`.
pub const CREATE: &str = "\tif (!config->shared || config->worker >= config->workers)\n\t\treturn -EINVAL;\n\tself->shared = config->shared;\n\tself->core = config->worker;\n";

/// The lock and this worker's line, as arguments.
pub const READ: &str = "&self->shared->lock, self->core";

/// The headers, with what a test has before them; nothing where nothing is shared.
pub fn includes(program: &Program, names: &Names) -> String {
    let mut out = String::new();
    if !names.shares() {
        return out;
    }
    if let Some(test) = names.sharing.test {
        let _ = writeln!(out, "#define MR_POINT_SEED {}ull", test.seed);
        if test.dropped {
            out.push_str("#define MR_LOCK_DROPPED 1\n");
        }
        out.push_str("#include \"sync/points.h\"\n");
    }
    out.push_str("#include \"sync/lock.h\"\n");
    if names.undo {
        out.push_str("#include \"sync/undo.h\"\n");
    }
    let mut kinds: BTreeSet<&str> = objects(program, names).map(|(_, kind)| kind).collect();
    if names.undo {
        // A worker's own, whose refreshes may have to be undone.
        let all = program.objects.iter().map(|o| o.kind.c);
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

fn objects<'a>(
    program: &'a Program,
    names: &'a Names,
) -> impl Iterator<Item = (ObjectId, &'static str)> + 'a {
    let all = program.objects.iter().enumerate();
    all.map(|(at, o)| (ObjectId(at), o.kind.c))
        .filter(|(id, _)| names.is_shared(*id))
}

/// What workers have in common.
pub fn shared(program: &Program, names: &Names) -> String {
    if !names.shares() {
        return String::new();
    }
    let mut out =
        String::from("\n/* One for all workers. */\nstruct mr_shared {\n\tstruct lock lock;\n");
    for (id, kind) in objects(program, names) {
        let _ = writeln!(out, "\tstruct {kind} {};", names.member(id));
    }
    out.push_str("};\n");
    out
}

/// What makes and releases it: what was made is unmade when something later fails.
pub fn lifetime(program: &Program, names: &Names) -> String {
    if !names.shares() {
        return String::new();
    }
    let mut create = String::new();
    let mut undo = String::from("\tlock_destroy(&self->lock);\n");
    let mut destroy = String::new();
    let mut label = "unlock".to_owned();
    undo.insert_str(0, "unlock:\n");
    for (id, kind) in objects(program, names) {
        let member = names.member(id);
        let operands = format!("&self->{member}, &{}", names.shape(id));
        let _ = write!(
            create,
            "\terror = {kind}_create({operands}, config, config->initial ? config->initial[{}] : NULL);\n\tif (error)\n\t\tgoto {label};\n",
            id.0
        );
        label = format!("undo{}", id.0);
        undo.insert_str(0, &format!("{label}:\n\t{kind}_destroy({operands});\n"));
        destroy.insert_str(0, &format!("\t{kind}_destroy({operands});\n"));
    }
    // Nothing comes after the last of them that could fail.
    let last = format!("{label}:\n");
    let undo = match undo.strip_prefix(&last).and_then(|u| u.split_once('\n')) {
        Some((_, rest)) => rest.to_owned(),
        None => undo,
    };
    format!(
        "
static int create_shared(struct mr_shared *self, const struct mr_config *config)
{{
	int error;

	error = lock_create(&self->lock, config->workers);
	if (error)
		return error;
{create}	return 0;

{undo}	return error;
}}

static void destroy_shared(struct mr_shared *self)
{{
{destroy}	lock_destroy(&self->lock);
}}
"
    )
}

/// A control function of a shared object: `result` is its type, empty for none.
pub fn controlled(result: &str, call: &str) -> String {
    let (declaration, assign, give) = if result.is_empty() {
        (String::new(), "", "")
    } else {
        (
            format!("\t{result} result;\n\n"),
            "result = ",
            "\treturn result;\n",
        )
    };
    format!(
        "{declaration}\tlock_write(&self->shared->lock);\n\t{assign}{call};\n\tlock_write_end(&self->shared->lock);\n{give}"
    )
}

/// A handler that works on shared state.
pub fn handler(call: &str) -> String {
    format!(
        "\tlock_write(&self->shared->lock);\n\tpkt->core = self->core;\n\tpkt->commit = lock_commit_write(&self->shared->lock);\n\tpkt->time = lock_time_write(&self->shared->lock, pkt->time);\n\t{call};\n\tlock_write_end(&self->shared->lock);\n"
    )
}

/// Reclaims what has expired of shared objects, if a reader sees that there is something; nothing else.
pub fn ageing(program: &Program, names: &Names) -> String {
    let (mut due, mut calls) = (Vec::new(), String::new());
    for (id, kind) in objects(program, names) {
        let Some(object) = program.objects.get(id.0) else {
            continue;
        };
        if object.expire_after > 0 && offers(object, "age") && offers(object, "due") {
            let operands = names.operands(id);
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

/// What the module's table says of it.
pub fn table(names: &Names, start_once: bool, stop_once: bool) -> String {
    if !names.shares() {
        return String::new();
    }
    let mut out = String::from(
        "\t.shared_bytes = sizeof(struct mr_shared),\n\t.shared_align = _Alignof(struct mr_shared),\n\t.create_shared = create_shared,\n\t.destroy_shared = destroy_shared,\n",
    );
    if start_once {
        out.push_str("\t.start_once = 1,\n");
    }
    if stop_once {
        out.push_str("\t.stop_once = 1,\n");
    }
    out
}
