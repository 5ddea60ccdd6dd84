//! A section of a page of docs/, typed as it stands there: one script of all its commands, and what they have to print.

use std::path::Path;

use super::root;
use crate::book::commands::shown;
use crate::book::markdown::{Block, split};

/// The blocks below a heading of the second level.
pub fn blocks(page: &str, heading: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let (blocks, prose) = split(&text);
    let mut headings = prose.iter().filter(|(_, l)| l.starts_with("## "));
    let wanted = format!("## {heading}");
    let begin = headings
        .find(|(_, l)| *l == wanted)
        .unwrap_or_else(|| panic!("{page} has no heading `{heading}`"))
        .0;
    let end = headings.next().map_or(usize::MAX, |(line, _)| *line);
    let within = |b: &Block| begin < b.line && b.line < end;
    blocks.into_iter().filter(within).collect()
}

/// A command of a `console` block: its line on the page, and lines that it prints.
pub struct Asked {
    pub page: String,
    pub line: usize,
    pub words: String,
    prints: Vec<String>,
}

impl Asked {
    /// The file that has what it printed.
    pub fn file(&self) -> String {
        format!("printed.{}", self.line)
    }

    /// Compares with what it printed; `log` is shown where that differs.
    pub fn compare(&self, printed: &str, log: &str) {
        let mut lines = printed.lines().map(str::trim);
        for expected in self.prints.iter().filter(|p| *p != "…" && !p.is_empty()) {
            assert!(
                lines.any(|l| shown(l, expected)),
                "{}:{}: $ {}\nprints no line\n{expected}\nbut\n{printed}\n{log}",
                self.page,
                self.line,
                self.words
            );
        }
    }

    /// The command that failed, as the last that began: what it printed.
    pub fn failed(all: &[Self], printed: impl Fn(&Self) -> Option<String>) -> String {
        let last = all.iter().rfind(|a| printed(a).is_some());
        last.map_or("before the first `$`".to_owned(), |a| {
            let text = printed(a).unwrap();
            format!("{}:{}: $ {}\n{text}", a.page, a.line, a.words)
        })
    }
}

fn asked(page: &str, block: &Block) -> Vec<Asked> {
    let mut all: Vec<Asked> = Vec::new();
    for (line, text) in (block.line + 1..).zip(block.text.lines()) {
        match (text.strip_prefix("$ "), all.last_mut()) {
            (Some(words), _) => all.push(Asked {
                page: page.to_owned(),
                line,
                words: words.to_owned(),
                prints: Vec::new(),
            }),
            (None, Some(last)) => last.prints.push(text.trim().to_owned()),
            (None, None) => panic!("{page}:{line}: a block begins with `$ `"),
        }
    }
    all
}

/// Makes the files of the section in `folder`, and one script of all its commands; what each of a `console` block prints goes to
/// [`Asked::file`] in `printed`.
pub fn script(page: &str, blocks: &[Block], folder: &Path, printed: &str) -> (String, Vec<Asked>) {
    let (mut script, mut all) = (String::new(), Vec::new());
    for block in blocks {
        if let Some(file) = &block.file {
            std::fs::write(folder.join(file), &block.text).unwrap();
        } else if block.info == "sh,no_run" {
            script.push_str(&block.text);
        } else if block.info == "console,no_run" {
            for asked in asked(page, block) {
                let file = asked.file();
                script.push_str(&format!("{{ {}\n}} > {printed}/{file} 2>&1\n", asked.words));
                all.push(asked);
            }
        }
    }
    (script, all)
}
