//! The C around the bodies: what happens at a row's number, the passes over rows, the functions that the host calls.

use std::collections::BTreeSet;
use std::fmt::Write;

use millrace_check::facts::StepId;
use millrace_object::program::ObjectId;

use super::AGE;
use super::hooks::{Cell, Head};
use crate::codegen::{self, Burst, Unit, key_words};

/// A site's functions.
pub struct Replayed {
    /// `PROGRAM_SITE`, behind `replay` and `token`
    name: String,
    /// the object whose entry can be fetched ahead
    object: Option<ObjectId>,
}

impl Replayed {
    /// Whether its passes have something to fetch.
    pub fn passes(&self) -> bool {
        self.object.is_some()
    }
}

/// Those of all sites, by number.
pub fn sites<'a>(cells: impl Iterator<Item = (usize, usize, &'a Cell)>) -> Vec<Replayed> {
    let mut all = Vec::new();
    for (_, number, cell) in cells {
        let object = |step: StepId| cell.keys.get(&step).map(|key| key.1);
        all.extend((0..).zip(&cell.part.sites).map(|(at, site)| Replayed {
            name: format!("{number}_{at}"),
            object: object(site.step),
        }));
    }
    all
}

/// What happens before each row, the passes, and the replay of rows.
pub fn common(
    head: Head,
    sites: &[Replayed],
    (burst, parted): (&Burst, &BTreeSet<ObjectId>),
) -> String {
    let mut before = String::new();
    if burst.ages {
        let _ = writeln!(
            before,
            "\tif (number % {AGE} == 0)\n\t\tage(self, pkt->time);"
        );
    }
    if burst.unit.timers {
        before.push_str(
            "\tif (mr_unlikely(pkt->time >= self->alarms.seen.next))\n\t\tfire_due(self, pkt);\n",
        );
    }
    let (mut cases, mut tokens, mut fetches) = (String::new(), String::new(), String::new());
    for (number, site) in sites.iter().enumerate() {
        let name = &site.name;
        let _ = writeln!(
            cases,
            "\tcase {number}:\n\t\treplay{name}(self, pkt, row, slot);\n\t\treturn 0;"
        );
        let Some(object) = site.object else { continue };
        let _ = writeln!(
            tokens,
            "\tcase {number}:\n\t\ttoken{name}(self, pkt, row, slot);\n\t\tbreak;"
        );
        let kind = burst.unit.program.objects.get(object.0);
        let _ = writeln!(
            fetches,
            "\tcase {}:\n\t\tslot->token = {}_prefetch_entry({}, slot->token);\n\t\tbreak;",
            number + 1,
            kind.map_or("", |o| o.kind.c),
            burst.unit.operands(object)
        );
    }
    let site = match head.site {
        0 => "0".to_owned(),
        bits => format!("row_take(row, {}, {bits})", head.time + head.number),
    };
    let time = match head.time {
        0 => "time".to_owned(),
        bits => format!("row_whole(row_take(row, 0, {bits}), {bits}, time)"),
    };
    let ingress = match head.number {
        0 => "ingress".to_owned(),
        bits => format!(
            "row_whole(row_take(row, {}, {bits}), {bits}, ingress)",
            head.time
        ),
    };
    let mut out = match parted.is_empty() {
        true => String::new(),
        false => parts_age(burst.unit, parted),
    };
    let _ = write!(
        out,
        "
/* What happens at row `number`, before it, at its time: the same on every replica. */
MR_INLINE void row_begin(struct mr_instance *self, struct mr_packet *pkt, u64 number)
{{
	(void)self;
	(void)pkt;
	(void)number;
{before}}}

/* A descriptor for rows, without a packet. */
MR_INLINE struct mr_packet row_none(void)
{{
	static u8 nothing;

	return (struct mr_packet){{
		.data = &nothing, .end = &nothing, .meta = &nothing, .floor = &nothing, .ceiling = &nothing,
	}};
}}

/* Time and number of a row's packet. */
MR_INLINE void row_of(struct mr_packet *pkt, const u8 *row, u64 time, u64 ingress)
{{
	(void)row;
	(void)time;
	(void)ingress;
	pkt->time = {time};
	pkt->number = {ingress};
	pkt->draws = 0;
}}

/* Which of the program's first accesses to state a row is of. */
MR_INLINE u64 row_site(const u8 *row)
{{
	(void)row;
	return {site};
}}

/* One row, with what the passes found of it, or NULL; -EINVAL for what is none. */
MR_INLINE int replay_row(struct mr_instance *self, struct mr_packet *pkt, const u8 *row, u64 number, const struct slot *slot)
{{
	if (mr_unlikely(row_site(row) >= {count}u))
		return -EINVAL;
	row_begin(self, pkt, number);
	switch (row_site(row)) {{
{cases}	default:
		return -EINVAL;
	}}
}}

static __attribute__((noinline)) int replay_plain(struct mr_instance *self, const u8 *rows, u32 n, u64 number, u64 time, u64 ingress)
{{
	struct mr_packet pkt = row_none();

	for (u32 i = 0; i < n; i++) {{
		const u8 *row = rows + (u64)i * {bytes};
		int error;

		row_of(&pkt, row, time, ingress);
		error = replay_row(self, &pkt, row, number + i, NULL);
		if (mr_unlikely(error))
			return error;
	}}
	return 0;
}}
",
        count = sites.len(),
        bytes = head.bytes,
    );
    match sites.iter().any(Replayed::passes) {
        true => {
            out.push_str(&gate(burst.unit, sites));
            out.push_str(&passes(head, &tokens, &fetches));
        }
        false => out.push_str(
            "
static int replay_all(struct mr_instance *self, const u8 *rows, u32 n, u64 number, u64 time, u64 ingress)
{
	return replay_plain(self, rows, n, number, time, ingress);
}
",
        ),
    }
    out
}

/// Reclaims what has expired of the worker's own parts.
fn parts_age(unit: &Unit, parted: &BTreeSet<ObjectId>) -> String {
    let mut calls = String::new();
    for (id, object) in unit.objects().filter(|(id, _)| parted.contains(id)) {
        if object.expire_after > 0 && codegen::offers(object, "age") {
            let (kind, operands) = (object.kind.c, unit.operands(id));
            let _ = writeln!(calls, "\t{kind}_age({operands}, now);");
        }
    }
    format!(
        "
/* Of what only this worker has, once a burst, at its first packet's time: no row is about it. */
MR_INLINE void age_parts(struct mr_instance *self, u64 now)
{{
	(void)self;
	(void)now;
{calls}}}
"
    )
}

/// When rows are replayed in passes.
fn gate(unit: &Unit, sites: &[Replayed]) -> String {
    let mut objects: Vec<ObjectId> = sites.iter().filter_map(|s| s.object).collect();
    objects.sort_unstable();
    objects.dedup();
    let declared = |o: &ObjectId| unit.program.objects.get(o.0);
    let long = objects
        .iter()
        .filter_map(declared)
        .any(|o| key_words(o) > 1);
    if long {
        return "
/* A few rows have nothing to overlap. Others pay whether or not the state fits the cache: keys of several words are hashed
 * while rows of one entry wait for each other. */
MR_INLINE int rows_pay(const struct mr_instance *self, u32 n)
{
	(void)self;
	return n >= MR_FEW;
}
"
        .to_owned();
    }
    let cold = |o: &ObjectId| {
        let kind = declared(o).map_or("", |o| o.kind.c);
        format!("{kind}_cold({})", unit.operands(*o))
    };
    let cold: Vec<String> = objects.iter().map(cold).collect();
    format!(
        "
/* A few rows have nothing to overlap; with keys of a word the passes cost more than they save while the state fits the cache. */
MR_INLINE int rows_pay(const struct mr_instance *self, u32 n)
{{
	return n >= MR_FEW && ({});
}}
",
        cold.join(" || ")
    )
}

fn passes(head: Head, tokens: &str, fetches: &str) -> String {
    format!(
        "
/* The first pass of a row. */
MR_INLINE void row_token(struct mr_instance *self, struct mr_packet *pkt, const u8 *row, struct slot *slot)
{{
	slot->site = 0;
	switch (row_site(row)) {{
{tokens}	default:
		break;
	}}
}}

/* The second pass. */
MR_INLINE void row_entry(struct mr_instance *self, struct slot *slot)
{{
	switch (slot->site) {{
{fetches}	default:
		break;
	}}
}}

/* Three passes, so that the misses of a batch overlap. */
static __attribute__((noinline)) int replay_passes(struct mr_instance *self, const u8 *rows, u32 n, u64 number, u64 time, u64 ingress)
{{
	struct mr_packet pkt = row_none();
	struct slot slots[MR_BATCH];

	while (n > 0) {{
		const u32 count = n < MR_BATCH ? n : MR_BATCH;

		for (u32 i = 0; i < count; i++) {{
			row_of(&pkt, rows + (u64)i * {bytes}, time, ingress);
			row_token(self, &pkt, rows + (u64)i * {bytes}, &slots[i]);
		}}
		for (u32 i = 0; i < count; i++)
			row_entry(self, &slots[i]);
		for (u32 i = 0; i < count; i++) {{
			const u8 *row = rows + (u64)i * {bytes};
			int error;

			row_of(&pkt, row, time, ingress);
			error = replay_row(self, &pkt, row, number + i, &slots[i]);
			if (mr_unlikely(error))
				return error;
		}}
		rows += (u64)count * {bytes};
		number += count;
		n -= count;
	}}
	return 0;
}}

static int replay_all(struct mr_instance *self, const u8 *rows, u32 n, u64 number, u64 time, u64 ingress)
{{
	if (rows_pay(self, n))
		return replay_passes(self, rows, n, number, time, ingress);
	return replay_plain(self, rows, n, number, time, ingress);
}}
",
        bytes = head.bytes,
    )
}

/// The functions of one packet entry.
pub fn burst(burst: &Burst, cell: Option<&Cell>) -> String {
    let Burst { index, entry, .. } = burst;
    let begin: String = (burst.begin.iter())
        .filter(|l| !l.contains("fire_due"))
        .flat_map(|l| l.lines())
        .map(|l| format!("\t{}\n", l.replace("packets[i]", "pkt")))
        .collect();
    let touches = cell.is_some_and(|c| !c.part.sites.is_empty());
    let bytes = cell.map_or(1, |c| c.head.bytes);
    let extract = match cell.filter(|_| touches) {
        None => "\t(void)self;\n\t(void)from;\n\t(void)row;\n\treturn 0;\n".to_owned(),
        // It writes what later steps read: not into the packet, which the program still has to see.
        Some(cell) if cell.part.scratch => format!(
            "	struct mr_packet pkt = *from;
	u64 length = (u64)(from->end - from->data);
	u8 copy[0xffff];

	memcpy(copy, from->data, length);
	pkt.floor = copy;
	pkt.meta = copy;
	pkt.data = copy;
	pkt.end = copy + length;
	pkt.ceiling = pkt.end;
	return extract{index}_row(self, &pkt, row);
"
        ),
        Some(_) => format!(
            "\tstruct mr_packet pkt = *from;\n\n\treturn extract{index}_row(self, &pkt, row);\n"
        ),
    };
    let slot = if entry.slotted { ", slot" } else { "" };
    format!(
        "
static u32 extract{index}(struct mr_instance *self, const struct mr_packet *from, u8 *row)
{{
{extract}}}

/* A packet with its row, NULL where it has none, and what the passes found of that, or NULL. */
MR_INLINE void process{index}(struct mr_instance *self, struct mr_packet *pkt, const u8 *row, u64 number, const struct slot *slot)
{{
	u64 time = pkt->time, ingress = pkt->number;

	if (row)
		row_begin(self, pkt, number);
	pkt->draws = 0;
	self->row = row;
{begin}	{run}(self, pkt{slot});
	if (mr_likely(!self->row))
		return;
	/* It is no longer the packet that the row was made of. */
	self->row = NULL;
	replay_plain(self, row, 1, number + !(number % {AGE}), time, ingress);
	pkt->fate = MR_ABORTED;
	pkt->out = 0;
}}

/* One core: each packet makes its row by itself. */
static __attribute__((noinline)) void burst{index}_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
	u8 row[{bytes}];

	for (u32 i = 0; i < n; i++) {{
		fetch_ahead(packets, i, n);
		if (extract{index}(self, packets[i], row))
			process{index}(self, packets[i], row, self->rows++, NULL);
		else
			process{index}(self, packets[i], NULL, 0, NULL);
	}}
}}
",
        run = entry.function,
    )
}

/// Packets among the rows of others. `known` refuses programs that there are not.
fn mixed(known: &str, (passes, parts): (bool, bool)) -> String {
    let parameters = "struct mr_instance *self, u32 program, struct mr_packet *const *packets, const u8 *const *rows, u32 n, u64 number, u64 time, u64 ingress";
    let passed = "self, program, packets, rows, n, number, time, ingress";
    let mut out = format!(
        "
/* One place of the order: a row of another replica, or a packet. */
MR_INLINE int mixed_one(struct mr_instance *self, u32 program, struct mr_packet *own, struct mr_packet *pkt, const u8 *row, u64 number, u64 time, u64 ingress, const struct slot *slot)
{{
	if (own) {{
		process_one(self, program, own, row, number, slot);
		return 0;
	}}
	row_of(pkt, row, time, ingress);
	return replay_row(self, pkt, row, number, slot);
}}

static __attribute__((noinline)) int mixed_plain({parameters})
{{
	struct mr_packet pkt = row_none();

	for (u32 i = 0; i < n; i++) {{
		int error = mixed_one(self, program, packets[i], &pkt, rows[i], number, time, ingress, NULL);

		if (mr_unlikely(error))
			return error;
		number += rows[i] != NULL;
	}}
	return 0;
}}
"
    );
    if passes {
        let _ = write!(
            out,
            "
/* Three passes; the token of a packet is that of its row. */
static __attribute__((noinline)) int mixed_passes({parameters})
{{
	struct mr_packet pkt = row_none();
	struct slot slots[MR_BATCH];

	while (n > 0) {{
		const u32 count = n < MR_BATCH ? n : MR_BATCH;

		for (u32 i = 0; i < count; i++) {{
			slots[i].site = 0;
			if (packets[i])
				mr_prefetch(packets[i]->data);
			if (mr_unlikely(!rows[i]))
				continue;
			row_of(&pkt, rows[i], time, ingress);
			row_token(self, &pkt, rows[i], &slots[i]);
		}}
		for (u32 i = 0; i < count; i++)
			row_entry(self, &slots[i]);
		for (u32 i = 0; i < count; i++) {{
			int error = mixed_one(self, program, packets[i], &pkt, rows[i], number, time, ingress, &slots[i]);

			if (mr_unlikely(error))
				return error;
			number += rows[i] != NULL;
		}}
		packets += count;
		rows += count;
		n -= count;
	}}
	return 0;
}}
"
        );
    }
    let age = match parts {
        true => {
            "\tfor (u32 i = 0; i < n; i++) {\n\t\tif (packets[i]) {\n\t\t\tage_parts(self, packets[i]->time);\n\t\t\tbreak;\n\t\t}\n\t}\n"
        }
        false => "",
    };
    let gate = match passes {
        true => format!("\tif (rows_pay(self, n))\n\t\treturn mixed_passes({passed});\n"),
        false => String::new(),
    };
    let _ = write!(
        out,
        "
static int mixed({parameters})
{{
{known}{age}{gate}	return mixed_plain({passed});
}}
"
    );
    out
}

/// The member of the module's table, and what it names.
/// `passes`: some site has something to fetch; `parts`: workers have parts of objects.
pub fn table(head: Head, programs: &[usize], (passes, parts): (bool, bool)) -> [String; 2] {
    let cases = |call: &dyn Fn(usize) -> String| -> String {
        let case = |p: &usize| format!("\tcase {p}:\n\t\t{}\n", call(*p));
        programs.iter().map(case).collect()
    };
    let extract = cases(&|p| format!("return extract{p}(self, pkt, row);"));
    let process = cases(&|p| format!("process{p}(self, pkt, row, number, slot);\n\t\tbreak;"));
    let programs = programs.iter().max().map_or(0, |last| last + 1);
    let known = format!("\tif (program >= {programs}u)\n\t\treturn -EINVAL;\n");
    let mixed = mixed(&known, (passes, parts));
    let functions = format!(
        "
static u32 extract_any(struct mr_instance *self, u32 program, const struct mr_packet *pkt, u8 *row)
{{
	switch (program) {{
{extract}	default:
		return 0;
	}}
}}

MR_INLINE void process_one(struct mr_instance *self, u32 program, struct mr_packet *pkt, const u8 *row, u64 number, const struct slot *slot)
{{
	switch (program) {{
{process}	default:
		pkt->fate = MR_ABORTED;
		pkt->out = 0;
		break;
	}}
}}

static void process_any(struct mr_instance *self, u32 program, struct mr_packet *pkt, const u8 *row, u64 number)
{{
	process_one(self, program, pkt, row, number, NULL);
}}
{mixed}
static const struct mr_history history = {{
	.bytes = {bytes},
	.time_bits = {time},
	.extract = extract_any,
	.process = process_any,
	.replay = replay_all,
	.replay_plain = replay_plain,
	.burst = mixed,
}};
",
        bytes = head.bytes,
        time = head.time,
    );
    ["\t.history = &history,\n".into(), functions]
}
