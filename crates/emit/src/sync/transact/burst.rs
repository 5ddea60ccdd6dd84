//! The functions of one packet entry whose packets are transactions: a burst under the core's line, each packet in as many
//! attempts as it takes.

use std::fmt::Write;

use crate::codegen::{Burst, Gate};
use crate::sync::lock::text::READ;

/// What a test has of each packet.
#[derive(Clone, Copy)]
pub struct Test {
    /// its place in an order
    pub order: bool,
    /// what it read and wrote
    pub log: bool,
}

/// How packets are run.
pub struct How {
    /// programs compute with the packet's time, which moves on to that of what the packet finds
    pub clock: bool,
    /// what is due at moments of its own is in shared objects: the number of that reason to run alone
    pub event: Option<usize>,
    /// no moment is told that is earlier than what was done to shared objects
    pub floor: bool,
    /// the attempt begins its sets by itself, where it needs them, and has committed when it is done
    pub few: bool,
    /// it keeps something to undo
    pub undoes: bool,
}

/// The text.
pub fn bursts(burst: &Burst, how: &How, test: Test) -> String {
    let How {
        clock,
        event,
        floor,
        few,
        undoes,
    } = *how;
    let log = test.log;
    let Burst {
        unit, index, entry, ..
    } = burst;
    let statements = |which: &dyn Fn(&str) -> bool| -> String {
        let lines = burst.begin.iter().filter(|l| which(l));
        (lines.flat_map(|l| l.lines()))
            .map(|l| format!("\t{}\n", l.replace("packets[i]", "pkt")))
            .collect()
    };
    let begin = statements(&|_| true);
    // What is due in shared objects is fired by a packet that runs alone, before it.
    let (first_begin, due) = match event {
        Some(_) => (
            statements(&|l| !l.contains("fire_due")),
            format!("due{index}(self, pkt) || "),
        ),
        None => (begin.clone(), String::new()),
    };
    // The host begins them at 0.
    let draws = if unit.random {
        "\tpkt->draws = 0;\n"
    } else {
        ""
    };
    let floor = if unit.timers && (floor || event.is_none()) {
        "\tself->alarms.floor = pkt->time;\n"
    } else {
        ""
    };
    let committed = match test {
        Test { order: true, .. } => "\t\tpkt->commit = self->transact.order;\n",
        Test { log: true, .. } => {
            "\t\taccesses_end(&self->log, MR_ACCESS_PACKET, pkt->number, self->shared->lock.commits, pkt->time);\n"
        }
        _ => "",
    };
    let run = &entry.function;
    let later = match clock {
        true => {
            "\tpkt->time = self->transact.time = lock_time_write(&self->shared->lock, self->transact.time);\n"
        }
        false => "",
    };
    let logged = match log {
        true => {
            "\taccesses_end(&self->log, MR_ACCESS_ALONE, pkt->number, self->shared->lock.commits, pkt->time);\n"
        }
        false => "",
    };
    let alone = format!(
        "\tpkt->commit = {}++self->shared->lock.commits;\n{later}{draws}{floor}{begin}\t{run}(self, pkt);\n{logged}",
        // Even, as those of packets that write under the lock; others have none.
        if test.order { "" } else { "2 * " }
    );
    let Some(attempt) = &entry.attempt else {
        return format!(
            "
/* The packet as the only one at work. */
static __attribute__((noinline)) void alone{index}(struct mr_instance *self, struct mr_packet *pkt)
{{
	lock_read_to_write({READ});
	self->transact.count.alone++;
	self->whys[WHYS - 1]++;
	self->transact.time = pkt->time;
	pkt->undo = &self->transact;
{alone}	lock_write_to_read({READ});
}}
{}{}",
            plain(*index, clock, &format!("alone{index}(self, packets[i]);")),
            function(burst, "_plain", &format!("try{index}(self, packets, n);"))
        );
    };
    let slot = if entry.slotted { ", NULL" } else { "" };
    let again = match clock {
        true => format!(
            "\t\tpkt->time = self->transact.time = lock_time_read({READ}, self->transact.time);\n"
        ),
        false => String::new(),
    };
    let mut out = String::new();
    if let Some(event) = event {
        let sets = match few {
            true => "\tself->transact.time = pkt->time;\n\ttransact_begin_sets(&self->transact);\n",
            false => "",
        };
        let _ = write!(
            out,
            "
/* Whether something is due at the packet's time, which the packet then fires before it, as the only one at work. */
MR_INLINE int due{index}(struct mr_instance *self, const struct mr_packet *pkt)
{{
	if (mr_likely(pkt->time < self->shared->alarms.seen.next))
		return 0;
{sets}	self->transact.crowded = 1;
	self->transact.why = TRANSACT_WHYS + {event};
	return 1;
}}
"
        );
    }
    let _ = write!(
        out,
        "
/* Further attempts, the last of which may be as the only one at work. */
static __attribute__((noinline)) void again{index}(struct mr_instance *self, struct mr_packet *pkt)
{{
	do {{
		transact_again(&self->transact);
		if (self->transact.alone)
			break;
{again}		transact_begin(&self->transact);
{}	}} while ({due}{attempt}(self, pkt{slot}) != TRANSACT_DONE || !transact_commit(&self->transact));
	if (self->transact.alone) {{
{}	}}{}
	transact_end(&self->transact);
}}
",
        deeper(&format!("{draws}{first_begin}")),
        deeper(&alone),
        if committed.is_empty() {
            String::new()
        } else {
            format!(" else {{\n{committed}\t}}")
        },
    );
    let first = |name: &str, parameter: &str, call: &str| {
        let behind = match committed.is_empty() {
            false => format!("\telse\n{committed}"),
            true => String::new(),
        };
        let (begins, commits) = match few {
            true if undoes => ("\tundo_begin(&self->transact.undo);\n", ""),
            true => ("", ""),
            false => (
                "\tself->transact.time = pkt->time;\n\ttransact_begin(&self->transact);\n",
                " || !transact_commit(&self->transact)",
            ),
        };
        format!(
            "
MR_INLINE void {name}(struct mr_instance *self, struct mr_packet *pkt{parameter})
{{
	pkt->undo = &self->transact;
{begins}{first_begin}	if (mr_unlikely({due}{call} != TRANSACT_DONE{commits}))
		again{index}(self, pkt);
{behind}}}
"
        )
    };
    out.push_str(&first(
        &format!("packet{index}"),
        "",
        &format!("{attempt}(self, pkt{slot})"),
    ));
    out.push_str(&plain(
        *index,
        clock,
        &format!("packet{index}(self, packets[i]);"),
    ));
    out.push_str(&function(
        burst,
        "_plain",
        &format!("try{index}(self, packets, n);"),
    ));
    let Some(gate) = Gate::of(unit, entry) else {
        return out;
    };
    // A key, too, may be made of the time that the prefetch pass saw.
    let (came, current) = match clock && entry.resume.is_some() {
        true => (
            "\t\t\tconst u64 came = packets[i]->time;\n\n",
            " && packets[i]->time == came",
        ),
        false => ("", ""),
    };
    let (last, with_slot) = match &entry.resume {
        Some(resume) => (
            format!(
                "\t\t\tif (mr_unlikely(!(slots[i].site{current}))) {{\n\t\t\t\ttry{index}(self, packets + i, 1);\n\t\t\t\tcontinue;\n\t\t\t}}\n\t\t\ttaken_up{index}(self, packets[i], &slots[i]);\n"
            ),
            format!("{resume}(self, pkt, slot)"),
        ),
        None => (
            format!("\t\t\ttaken_up{index}(self, packets[i], &slots[i]);\n"),
            format!("{attempt}(self, pkt, slot)"),
        ),
    };
    out.push_str(&first(
        &format!("taken_up{index}"),
        ", const struct slot *slot",
        &with_slot,
    ));
    let last = format!(
        "{came}\t\t\tlock_read_on(&self->shared->lock, core, line, &next);\n\t\t\tpackets[i]->core = core;\n{}{last}",
        deeper(&time(clock))
    );
    let (why, condition) = (gate.why, &gate.condition);
    out.push_str(&gate.passes(&format!("try{index}"), "", LINE, &last));
    let _ = write!(
        out,
        "
/* {why} */{}",
        function(
            burst,
            "",
            &format!(
                "if ({condition})\n\t\ttry{index}_passes(self, packets, n);\n\telse\n\t\ttry{index}(self, packets, n);"
            )
        )
    );
    out
}

/// The line of the worker's core, which a burst looks at between packets.
const LINE: &str = "\tconst u32 core = self->core;\n\tstruct lock_line *const line = lock_line(&self->shared->lock, core);\n\tu32 next = lock_next(line);\n";

/// A packet's time, as that of its place among packets that run alone and those of its core.
fn time(clock: bool) -> String {
    match clock {
        true => format!("\t\tpackets[i]->time = lock_time_read({READ}, packets[i]->time);\n"),
        false => String::new(),
    }
}

/// Packets one after another under the core's line.
fn plain(index: usize, clock: bool, each: &str) -> String {
    let time = time(clock);
    format!(
        "
static __attribute__((noinline)) void try{index}(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
{LINE}
	for (u32 i = 0; i < n; i++) {{
		fetch_ahead(packets, i, n);
		lock_read_on(&self->shared->lock, core, line, &next);
		packets[i]->core = core;
{time}		{each}
	}}
}}
"
    )
}

/// A function that runs a burst.
fn function(burst: &Burst, suffix: &str, inside: &str) -> String {
    let index = burst.index;
    let own = if burst.ages {
        "\tage(self, packets[0]->time);\n"
    } else {
        ""
    };
    format!(
        "
static __attribute__((noinline)) void burst{index}{suffix}(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
	if (n == 0)
		return;
{own}	lock_read({READ});
	age_shared(self, packets[0]->time);
	{inside}
	transact_counted(&self->transact, n);
	lock_read_end({READ});
}}
"
    )
}

/// One tab deeper.
fn deeper(lines: &str) -> String {
    lines.lines().map(|l| format!("\t{l}\n")).collect()
}
