//! The module around the programs: creation, entries, bursts, the table that the host reads.

use std::fmt::Write;

use millrace_object::Program;
use millrace_object::program::{ObjectId, Role};

use super::objects::{Names, offers};
use super::resume::Resume;
use super::scout::Scout;
use super::text::comment_text;
use super::{nested, timers};
use crate::lock;

/// One entry as emitted.
pub struct Entry {
    /// its C function
    pub function: String,
    /// whether that takes a slot (or NULL), for a token
    pub slotted: bool,
    /// what starts it
    pub role: Role,
    /// what its scout can find, for packet entries
    pub prefetch: Option<Prefetch>,
    /// the C function that takes up what a scout found
    pub resume: Option<String>,
    /// the C function that runs packets as readers, where workers share state
    pub reader: Option<String>,
    /// whether the entry works on what workers share
    pub shares: bool,
}

/// A scout's result, without its steps.
pub struct Prefetch {
    /// the scout's C function
    pub function: String,
    /// by site number less 1
    pub objects: Vec<ObjectId>,
    /// how many steps it has
    pub steps: usize,
}

/// From so many steps on, the passes pay even when all state is in the cache, if the program goes on
/// from its scout: what one packet waits for, the next ones fill. A shorter program overlaps by itself.
/// Passes against none at 1K flows (docs/measurements/bench.md, `gate`): 36 steps 1.12, 49 steps 0.90, 557 steps 0.84.
const LONG: usize = 40;

impl Prefetch {
    /// What is needed of a scout once it is written.
    pub fn of(scout: &Scout, function: String) -> Prefetch {
        Prefetch {
            function,
            objects: scout.objects.clone(),
            steps: scout.slice.runs(),
        }
    }
}

/// Whether an entry is for packets.
pub fn takes_packets(role: Role) -> bool {
    matches!(role, Role::Xdp | Role::OnPacket)
}

/// The opening comment: what the module is of.
pub fn header(program: &Program, entries: &[String], treatment: &str) -> String {
    let mut out = format!(
        "/* {}: emitted by millrace, {treatment}.\n *\n",
        comment_text(&program.name)
    );
    for entry in entries {
        let _ = writeln!(out, " * {}", comment_text(entry));
    }
    for object in &program.objects {
        let _ = writeln!(
            out,
            " * {}: {}",
            comment_text(&object.name),
            comment_text(object.kind.name)
        );
    }
    out.push_str(
        " *\n * How to read it: crates/emit/README.md, and alone.h for the names of locals.\n */\n",
    );
    out
}

/// The slot that a scout fills, and what it is good for.
pub fn slot<'a>(words: u32, rests: impl Iterator<Item = &'a Resume<'a>>) -> String {
    let (mut numbers, mut pointers, mut bytes) = (0, 0, 0);
    for rest in rests {
        let room = rest.room();
        numbers = numbers.max(room.0);
        pointers = pointers.max(room.1);
        bytes = bytes.max(room.2);
    }
    let mut kept = String::new();
    for (count, text) in [
        (numbers, format!("\tu64 number[{numbers}];\n")),
        (pointers, format!("\tu8 *pointer[{pointers}];\n")),
        (
            bytes as usize,
            format!("\t_Alignas(8) u8 stack[{bytes}];\n"),
        ),
    ] {
        if count > 0 {
            kept.push_str(&text);
        }
    }
    format!(
        "
/* What a scout found of one packet: at which operation (0: none), with which key, its token, and what the
 * rest of the program reads of registers and stack. */
struct slot {{
	u64 token;
	u64 key[{words}];
{kept}	u32 site;
}};

/* Whether the slot's token is the one of this key at this operation. */
MR_INLINE int slot_holds(const struct slot *slot, u32 site, const u64 *key, u32 words)
{{
	return slot && slot->site == site && mr_words_equal(slot->key, key, words);
}}
"
    )
}

/// Creation and destruction of an instance: what was made is unmade when something later fails.
pub fn lifetime(program: &Program, names: &Names, random: bool) -> String {
    let objects: Vec<(usize, &str)> = (program.objects.iter().enumerate())
        .filter(|(index, o)| names.is_owned(ObjectId(*index)) && !o.is_shape())
        .map(|(index, object)| (index, object.kind.c))
        .collect();
    let mut out = lock::text::lifetime(program, names);
    out.push_str(&nested::lifetime(program, names));
    out.push_str(
        "\nstatic int create(struct mr_instance *self, const struct mr_config *config)\n{\n",
    );
    if names.shares() {
        out.push_str(lock::text::CREATE);
    }
    if random {
        out.push_str("\tself->sketch_seed = config->sketch_seed;\n");
    }
    out.push_str(nested::begin(program));
    let mut undo = String::new();
    for (position, (index, c)) in objects.iter().enumerate() {
        let operands = names.operands(ObjectId(*index));
        let previous = position.checked_sub(1).map(|p| objects[p].0);
        if position == 0 {
            let begin = out.rfind("static int create(");
            let brace = begin.and_then(|b| out.get(b..)?.find("{\n").map(|at| b + at + 2));
            out.insert_str(brace.unwrap_or(0), "\tint error;\n\n");
        }
        let _ = writeln!(
            out,
            "\terror = {c}_create({operands}, config, config->initial ? config->initial[{index}] : NULL);"
        );
        let _ = match previous {
            Some(previous) => writeln!(out, "\tif (error)\n\t\tgoto undo{previous};"),
            None => writeln!(out, "\tif (error)\n\t\treturn error;"),
        };
        if position + 1 < objects.len() {
            undo.insert_str(0, &format!("undo{index}:\n\t{c}_destroy({operands});\n"));
        }
    }
    if objects.is_empty() {
        out.push_str("\t(void)self;\n\t(void)config;\n");
    }
    out.push_str(&timers::create(program, names));
    out.push_str(&nested::fill(program, names));
    out.push_str("\treturn 0;\n");
    if !undo.is_empty() {
        let _ = write!(out, "\n{undo}\treturn error;\n");
    }
    out.push_str("}\n\nstatic void destroy(struct mr_instance *self)\n{\n");
    out.push_str(&nested::clear(program, names));
    for (index, c) in objects.iter().rev() {
        let _ = writeln!(out, "\t{c}_destroy({});", names.operands(ObjectId(*index)));
    }
    if objects.is_empty() {
        out.push_str("\t(void)self;\n");
    }
    out.push_str("}\n");
    out
}

/// What a burst begins with: bounded reclaiming of what has expired.
pub fn ageing(program: &Program, names: &Names) -> String {
    let mut calls = String::new();
    for (index, object) in program.objects.iter().enumerate() {
        if object.expire_after > 0 && offers(object, "age") && !names.is_shared(ObjectId(index)) {
            let _ = writeln!(
                calls,
                "\t{}_age({}, now);",
                object.kind.c,
                names.operands(ObjectId(index))
            );
        }
    }
    if calls.is_empty() {
        return String::new();
    }
    format!(
        "\n/* Once a burst, at its first packet's time. */\nstatic void age(struct mr_instance *self, u64 now)\n{{\n{calls}}}\n"
    )
}

/// When a burst takes the prefetching passes, and what the second of them does.
pub struct Gate<'a> {
    /// the scout's C function
    pub scout: &'a str,
    /// the condition, about `self` and `n`
    pub condition: String,
    /// its reason
    pub why: &'static str,
    /// the cases of the second pass, by site
    pub second: String,
}

impl<'a> Gate<'a> {
    /// Of an entry; none without a scout.
    pub fn of(program: &Program, names: &Names, entry: &'a Entry) -> Option<Gate<'a>> {
        let prefetch = entry.prefetch.as_ref()?;
        let mut objects = prefetch.objects.clone();
        objects.sort_unstable();
        objects.dedup();
        let kind = |object: ObjectId| program.objects[object.0].kind.c;
        let cold: Vec<String> = objects
            .iter()
            .map(|o| format!("{}_cold({})", kind(*o), names.operands(*o)))
            .collect();
        let (condition, why) = if entry.resume.is_some() && prefetch.steps >= LONG {
            (
                "n >= MR_FEW".to_owned(),
                "A few packets have nothing to overlap.",
            )
        } else {
            (
                format!("n >= MR_FEW && ({})", cold.join(" || ")),
                "A few packets have nothing to overlap; while the state fits the cache the passes would cost more than they save.",
            )
        };
        let mut second = String::new();
        for object in &objects {
            for (site, _) in (1..).zip(&prefetch.objects).filter(|(_, at)| *at == object) {
                let _ = writeln!(second, "\tcase {site}:");
            }
            let _ = writeln!(
                second,
                "\t\tslot->token = {}_prefetch_entry({}, slot->token);\n\t\tbreak;",
                kind(*object),
                names.operands(*object)
            );
        }
        Some(Gate {
            scout: &prefetch.function,
            condition,
            why,
            second,
        })
    }
}

/// The functions of one packet entry.
pub fn bursts(
    program: &Program,
    names: &Names,
    index: usize,
    entry: &Entry,
    ages: bool,
    begin: &[&str],
) -> String {
    let begin = |depth: usize| -> String {
        let line = |l: &str| format!("{}{l}\n", "\t".repeat(depth));
        begin.iter().flat_map(|l| l.lines()).map(line).collect()
    };
    let age = if ages {
        "\tif (n > 0)\n\t\tage(self, packets[0]->time);\n"
    } else {
        ""
    };
    let run = &entry.function;
    let slot = if entry.slotted { ", NULL" } else { "" };
    let mut out = format!(
        "
static __attribute__((noinline)) void burst{index}_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
{age}	for (u32 i = 0; i < n; i++) {{
		fetch_ahead(packets, i, n);
{begin}		{run}(self, packets[i]{slot});
	}}
}}
",
        begin = begin(2),
    );
    let Some(Gate {
        scout,
        condition: gate,
        why,
        second,
    }) = Gate::of(program, names, entry)
    else {
        return out;
    };
    let last = match &entry.resume {
        None => format!("{}\t\t\t{run}(self, packets[i], &slots[i]);\n", begin(3)),
        Some(resume) => format!(
            "\t\t\tif (!slots[i].site) {{
				burst{index}_plain(self, packets + i, 1);
				continue;
			}}
{}\t\t\t{resume}(self, packets[i], &slots[i]);\n",
            begin(3)
        ),
    };
    let _ = write!(
        out,
        "
static inline void {scout}_entry(struct mr_instance *self, struct slot *slot)
{{
	switch (slot->site) {{
{second}	default:
		break;
	}}
}}

/* Three passes, so that the misses of a batch overlap. */
static __attribute__((noinline)) void burst{index}_passes(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
	struct slot slots[MR_BATCH];

{age}	while (n > 0) {{
		const u32 count = n < MR_BATCH ? n : MR_BATCH;

		for (u32 i = 0; i < count; i++) {{
			fetch_ahead(packets, i, count);
			slots[i].site = 0;
			{scout}(self, packets[i], &slots[i]);
		}}
		for (u32 i = 0; i < count; i++)
			{scout}_entry(self, &slots[i]);
		for (u32 i = 0; i < count; i++) {{
{last}		}}
		packets += count;
		n -= count;
	}}
}}

/* {why} */
static void burst{index}(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
	if ({gate})
		burst{index}_passes(self, packets, n);
	else
		burst{index}_plain(self, packets, n);
}}
",
    );
    out
}

/// The table that the host reads.
pub fn table(program: &Program, names: &Names, entries: &[Entry]) -> String {
    let mut out = String::new();
    let wrapper = |out: &mut String, name: &str, entry: &Entry| {
        let call = format!("{}(self, pkt)", entry.function);
        let inside = if entry.shares {
            lock::text::handler(&call)
        } else {
            format!("\t{call};\n")
        };
        let _ = write!(
            out,
            "\nstatic void {name}(struct mr_instance *self, struct mr_packet *pkt)\n{{\n{inside}}}\n"
        );
    };
    let once = |role: fn(&Role) -> bool| entries.iter().any(|e| e.shares && role(&e.role));
    let mut timers = String::new();
    let (mut start, mut stop, mut timer_count) = ("NULL", "NULL", 0);
    for entry in entries {
        match entry.role {
            Role::OnStart => {
                wrapper(&mut out, "start", entry);
                start = "start";
            }
            Role::OnStop => {
                wrapper(&mut out, "stop", entry);
                stop = "stop";
            }
            Role::Every { period } => {
                wrapper(&mut out, &format!("fire{timer_count}"), entry);
                let _ = writeln!(
                    timers,
                    "\t{{ .period = {period}ull, .fire = fire{timer_count}{} }},",
                    if entry.shares { ", .once = 1" } else { "" }
                );
                timer_count += 1;
            }
            Role::Xdp | Role::OnPacket | Role::Timer => {}
        }
    }
    if timer_count > 0 {
        let _ = write!(
            out,
            "\nstatic const struct mr_timer timers[] = {{\n{timers}}};\n"
        );
    }
    let packets: Vec<&Entry> = entries.iter().filter(|e| takes_packets(e.role)).collect();
    for (table, suffix) in [("bursts", ""), ("bursts_plain", "_plain")] {
        let _ = writeln!(
            out,
            "\nstatic void (*const {table}[])(struct mr_instance *, struct mr_packet *const *, u32) = {{"
        );
        for (index, entry) in packets.iter().enumerate() {
            let suffix = if entry.prefetch.is_some() {
                suffix
            } else {
                "_plain"
            };
            let _ = writeln!(out, "\tburst{index}{suffix},");
        }
        if packets.is_empty() {
            out.push_str("\tNULL,\n");
        }
        out.push_str("};\n");
    }
    let _ = write!(
        out,
        "
static const struct mr_module module = {{
	.abi = MR_ABI,
	.objects = {objects},
	.timers = {timer_count},
	.programs = {programs},
	.instance_bytes = sizeof(struct mr_instance),
	.instance_align = _Alignof(struct mr_instance),
	.object = {object},
	.timer = {timer},
	.create = create,
	.destroy = destroy,
	.start = {start},
	.stop = {stop},
	.burst = bursts,
	.burst_plain = bursts_plain,
{alarms}{shared}}};

__attribute__((visibility(\"default\"))) const struct mr_module *millrace_module(void);

const struct mr_module *millrace_module(void)
{{
	return &module;
}}
",
        objects = program.objects.len(),
        programs = packets.len(),
        object = if program.objects.is_empty() {
            "NULL"
        } else {
            "objects"
        },
        timer = if timer_count == 0 { "NULL" } else { "timers" },
        alarms = if !names.timers {
            ""
        } else {
            "\t.alarms = alarms,\n\t.alarm = fire_due,\n"
        },
        shared = lock::text::table(
            names,
            once(|r| *r == Role::OnStart),
            once(|r| *r == Role::OnStop)
        ),
    );
    out
}
