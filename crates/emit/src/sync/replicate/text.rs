//! The C around the bodies: what happens at a row's number, the functions that the host calls.

use std::fmt::Write;

use super::AGE;
use super::hooks::{Cell, Head};
use crate::codegen::Burst;

/// The functions that replay each site, by its number.
pub fn sites<'a>(cells: impl Iterator<Item = (usize, usize, &'a Cell)>) -> Vec<String> {
    let mut all = Vec::new();
    for (_, number, cell) in cells {
        all.extend((0..cell.part.sites.len()).map(|at| format!("replay{number}_{at}")));
    }
    all
}

/// What happens before each row, and the replay of one.
pub fn common(head: Head, sites: &[String], burst: &Burst) -> String {
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
    let mut cases = String::new();
    for (number, function) in sites.iter().enumerate() {
        let _ = writeln!(
            cases,
            "\tcase {number}:\n\t\t{function}(self, &pkt, row);\n\t\treturn 0;"
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
    format!(
        "
/* What happens at row `number`, before it, at its time: the same on every replica. */
MR_INLINE void row_begin(struct mr_instance *self, struct mr_packet *pkt, u64 number)
{{
	(void)self;
	(void)pkt;
	(void)number;
{before}}}

/* One row; -EINVAL for what is none. */
static __attribute__((noinline)) int replay_row(struct mr_instance *self, const u8 *row, u64 number, u64 time, u64 ingress)
{{
	static u8 nothing;
	struct mr_packet pkt = {{
		.data = &nothing, .end = &nothing, .meta = &nothing, .floor = &nothing, .ceiling = &nothing,
		.time = {time}, .number = {ingress},
	}};

	(void)time;
	(void)ingress;
	(void)row;
	if ({site} >= {count}u)
		return -EINVAL;
	row_begin(self, &pkt, number);
	switch ({site}) {{
{cases}	default:
		return -EINVAL;
	}}
}}
",
        count = sites.len(),
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
    format!(
        "
static u32 extract{index}(struct mr_instance *self, const struct mr_packet *from, u8 *row)
{{
{extract}}}

/* A packet with its row, NULL where it has none. */
static void process{index}(struct mr_instance *self, struct mr_packet *pkt, const u8 *row, u64 number)
{{
	u64 time = pkt->time, ingress = pkt->number;

	if (row)
		row_begin(self, pkt, number);
	pkt->draws = 0;
	self->row = row;
{begin}	{run}(self, pkt);
	if (mr_likely(!self->row))
		return;
	/* It is no longer the packet that the row was made of. */
	self->row = NULL;
	replay_row(self, row, number + !(number % {AGE}), time, ingress);
	pkt->fate = MR_ABORTED;
	pkt->out = 0;
}}

/* One core: each packet makes its row by itself. */
static __attribute__((noinline)) void burst{index}_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
	u8 row[{bytes}];

	for (u32 i = 0; i < n; i++) {{
		if (extract{index}(self, packets[i], row))
			process{index}(self, packets[i], row, self->rows++);
		else
			process{index}(self, packets[i], NULL, 0);
	}}
}}
",
        run = entry.function,
    )
}

/// The member of the module's table, and what it names.
pub fn table(head: Head, programs: &[usize]) -> [String; 2] {
    let cases = |call: &dyn Fn(usize) -> String| -> String {
        let case = |p: &usize| format!("\tcase {p}:\n\t\t{}\n", call(*p));
        programs.iter().map(case).collect()
    };
    let extract = cases(&|p| format!("return extract{p}(self, pkt, row);"));
    let process = cases(&|p| format!("process{p}(self, pkt, row, number);\n\t\tbreak;"));
    let functions = format!(
        "
static u32 extract_any(struct mr_instance *self, u32 program, const struct mr_packet *pkt, u8 *row)
{{
	switch (program) {{
{extract}	default:
		return 0;
	}}
}}

static void process_any(struct mr_instance *self, u32 program, struct mr_packet *pkt, const u8 *row, u64 number)
{{
	switch (program) {{
{process}	default:
		pkt->fate = MR_ABORTED;
		pkt->out = 0;
		break;
	}}
}}

static int replay_all(struct mr_instance *self, const u8 *rows, u32 n, u64 number, u64 time, u64 ingress)
{{
	for (u32 i = 0; i < n; i++) {{
		int error = replay_row(self, rows + (u64)i * {bytes}, number + i, time, ingress);

		if (error)
			return error;
	}}
	return 0;
}}

static const struct mr_history history = {{
	.bytes = {bytes},
	.time_bits = {time},
	.extract = extract_any,
	.process = process_any,
	.replay = replay_all,
}};
",
        bytes = head.bytes,
        time = head.time,
    );
    ["\t.history = &history,\n".into(), functions]
}
