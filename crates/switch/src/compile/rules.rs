//! What a compilation gives, as text for a switch and as JSON.

use crate::openflow::{Group, Row, Table};

/// Rules of a switch.
#[derive(Clone, Debug)]
pub struct Rules {
    /// tables by number; those without rows are left out
    pub tables: Vec<Table>,
    /// groups, where there are several servers
    pub groups: Vec<Group>,
    /// what is used that OpenFlow 1.3 does not have
    pub extensions: Vec<&'static str>,
    /// why packets go to servers, with the number of actions for which it is so
    pub reasons: Vec<(String, usize)>,
    /// fields that make a difference and are not seen
    pub unseen: Vec<String>,
    /// bits of metadata for ranges of source and destination ports, by stage
    pub bits: Vec<[u32; 2]>,
    /// ports of the switch to servers
    pub to_servers: Vec<u32>,
}

impl Rules {
    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.tables.iter().flat_map(|t| &t.rows)
    }

    /// What is given to `ovs-ofctl`: a name, the version of OpenFlow, the command, and the lines, with where rows come from as comments. Rows that
    /// OpenFlow 1.3 has no words for are a part of their own.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        if !self.groups.is_empty() {
            parts.push(Part {
                name: "groups",
                version: "OpenFlow15",
                command: "add-groups",
                text: self.groups.iter().map(|g| format!("{g}\n")).collect(),
            });
        }
        let rows = |extended: bool| {
            let mut text = String::new();
            for table in &self.tables {
                let mut rows = table
                    .rows
                    .iter()
                    .filter(|r| r.extended() == extended)
                    .peekable();
                if rows.peek().is_some() {
                    text.push_str(&format!("# table {}: {}\n", table.number, table.name));
                }
                for row in rows {
                    if let Some(from) = &row.from {
                        text.push_str(&format!("# {from}\n"));
                    }
                    text.push_str(&format!("{row}\n"));
                }
            }
            text
        };
        parts.push(Part {
            name: "flows",
            version: "OpenFlow13",
            command: "add-flows",
            text: rows(false),
        });
        if self.rows().any(Row::extended) {
            parts.push(Part {
                name: "flows-extended",
                version: "OpenFlow10",
                command: "add-flows",
                text: rows(true),
            });
        }
        parts
    }

    /// All of it as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let reasons = self.reasons.iter();
        serde_json::json!({
            "tables": self.tables.iter().map(|t| serde_json::json!({
                "table": t.number, "name": t.name, "rows": t.rows.len(),
            })).collect::<Vec<_>>(),
            "groups": self.groups.iter().map(Group::json).collect::<Vec<_>>(),
            "rows": self.rows().map(Row::json).collect::<Vec<_>>(),
            "extensions": self.extensions,
            "metadata_bits": self.bits.iter().map(|[source, destination]| serde_json::json!({
                "source": source, "destination": destination,
            })).collect::<Vec<_>>(),
            "to_servers": reasons.map(|(reason, actions)| serde_json::json!({
                "reason": reason, "actions": actions,
            })).collect::<Vec<_>>(),
            "unseen": self.unseen,
        })
    }
}

/// Lines for one call of `ovs-ofctl`.
pub struct Part {
    /// a name for a file
    pub name: &'static str,
    /// the version of OpenFlow
    pub version: &'static str,
    /// the command
    pub command: &'static str,
    /// the lines
    pub text: String,
}
