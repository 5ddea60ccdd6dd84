//! Printed results, for people and as JSON.

use serde::Serialize;

use crate::measure::Figure;

/// One comparison.
#[derive(Serialize)]
pub struct Row {
    /// the function
    pub name: String,
    /// live flows
    pub flows: u32,
    /// how often each flow comes
    pub skew: String,
    /// nanoseconds a packet, by contender
    pub ns: Vec<(String, Figure)>,
    /// the ratio that the section's title names
    pub ratio: Figure,
    /// what the ratio is held to
    pub bar: String,
    /// whether the median holds it
    pub met: bool,
}

/// Comparisons of one kind.
#[derive(Serialize)]
pub struct Section {
    /// for `--only`
    pub name: &'static str,
    /// what is compared with what
    pub title: &'static str,
    /// what else a reader must know
    pub conditions: &'static str,
    /// the figures
    pub rows: Vec<Row>,
    /// why there are none
    pub skipped: Option<String>,
}

impl Section {
    /// Without rows yet.
    pub fn new(name: &'static str, title: &'static str, conditions: &'static str) -> Self {
        Self {
            name,
            title,
            conditions,
            rows: Vec::new(),
            skipped: None,
        }
    }

    /// Nothing could be measured.
    pub fn skipped(&mut self, why: &str) {
        self.skipped = Some(why.to_owned());
    }

    /// As a table on stderr.
    pub fn print(&self) {
        eprint!("\n{}", self.table());
    }

    /// As a table.
    pub fn table(&self) -> String {
        let mut text = format!("{}\n  {}\n", self.title, self.conditions);
        if let Some(why) = &self.skipped {
            text += &format!("  skipped: {why}\n");
        }
        for row in &self.rows {
            let ns: Vec<String> = row
                .ns
                .iter()
                .map(|(who, f)| format!("{who} {:.1}", f.median))
                .collect();
            text += &format!(
                "  {:<12} {:>8} {:<9} {:>5.2} ({:.2} to {:.2})  {}  [{}: {}]\n",
                row.name,
                row.flows,
                row.skew,
                row.ratio.median,
                row.ratio.low,
                row.ratio.high,
                ns.join(", "),
                row.bar,
                if row.met { "met" } else { "MISSED" }
            );
        }
        text
    }
}
