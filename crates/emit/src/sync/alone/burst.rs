//! The functions of one packet entry that one worker runs.

use std::fmt::Write;

use crate::codegen::{Burst, Gate};

/// The text.
pub fn bursts(burst: &Burst) -> String {
    let Burst { index, entry, .. } = burst;
    let begin = |depth: usize| -> String {
        let line = |l: &str| format!("{}{l}\n", "\t".repeat(depth));
        let lines = burst.begin.iter().flat_map(|l| l.lines());
        lines.map(line).collect()
    };
    let age = if burst.ages {
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
    let Some(gate) = Gate::of(burst.unit, entry) else {
        return out;
    };
    let later = if entry.takes_up { ", &later[i]" } else { "" };
    let last = match &entry.resume {
        None => format!("{}\t\t\t{run}(self, packets[i], &slots[i]);\n", begin(3)),
        Some(resume) if gate.before.is_some() => format!(
            "\t\t\tif (!slots[i].site) {{
{}				{run}(self, packets[i], &early[i]);
				continue;
			}}
{}\t\t\t{resume}(self, packets[i], &slots[i]{later});\n",
            begin(4),
            begin(3)
        ),
        Some(resume) => format!(
            "\t\t\tif (!slots[i].site) {{
				burst{index}_plain(self, packets + i, 1);
				continue;
			}}
{}\t\t\t{resume}(self, packets[i], &slots[i]{later});\n",
            begin(3)
        ),
    };
    out.push_str(&gate.passes(&format!("burst{index}"), "", age, &last));
    let _ = write!(
        out,
        "
/* {why} */
static void burst{index}(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
	if ({condition})
		burst{index}_passes(self, packets, n);
	else
		burst{index}_plain(self, packets, n);
}}
",
        why = gate.why,
        condition = gate.condition,
    );
    out
}
