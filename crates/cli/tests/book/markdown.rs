//! As much of Markdown as links and commands need: fenced blocks, headings with their anchors, links.

/// A fenced block of code.
pub struct Block {
    /// the line of its fence, from 1
    pub line: usize,
    /// what stands behind the fence, as in `console,fails`
    pub info: String,
    /// the file that the reader makes of it: a comment `<!-- file: PATH -->` before it
    pub file: Option<String>,
    pub text: String,
}

/// A link: the line that it is in, from 1, and where it leads.
pub struct Link {
    pub line: usize,
    pub target: String,
}

/// Splits a text into its fenced blocks and the lines outside of them; indented blocks count as outside no more
/// than fenced ones do.
pub fn split(text: &str) -> (Vec<Block>, Vec<(usize, &str)>) {
    let (mut blocks, mut prose) = (Vec::new(), Vec::new());
    let mut open: Option<(Block, String)> = None;
    let mut file = None;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some((block, fence)) = &mut open {
            if line.trim() == fence.as_str() {
                let (block, _) = open.take().unwrap();
                blocks.push(block);
            } else {
                block.text.push_str(line);
                block.text.push('\n');
            }
        } else if line.starts_with("```") {
            let info = line.trim_start_matches('`');
            let block = Block {
                line: number,
                info: info.trim().to_owned(),
                file: file.take(),
                text: String::new(),
            };
            open = Some((block, "`".repeat(line.len() - info.len())));
        } else if let Some(path) = line.strip_prefix("<!-- file: ") {
            file = Some(path.trim_end_matches("-->").trim().to_owned());
        } else if !line.starts_with("    ") {
            prose.push((number, line));
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    (blocks, prose)
}

/// A line without what stands in backquotes.
fn spoken(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// Links to files of the repository and to anchors; those to other sites are left out.
pub fn links(prose: &[(usize, &str)]) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, text) in prose {
        let text = spoken(text);
        for part in text.split("](").skip(1) {
            let target = part.split(')').next().unwrap();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && part.contains(')') {
                found.push(Link {
                    line: *line,
                    target: target.to_owned(),
                });
            }
        }
    }
    found
}

/// The anchors of a text's headings, as mdBook and GitHub make them: lower case, letters, digits, `-` and `_`,
/// blanks as `-`; the second of one name gets `-1`.
pub fn anchors(prose: &[(usize, &str)]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose {
        let Some(heading) = line
            .strip_prefix('#')
            .and_then(|l| l.trim_start_matches('#').strip_prefix(' '))
        else {
            continue;
        };
        let mut anchor = String::new();
        for c in heading.trim().chars() {
            match c {
                ' ' => anchor.push('-'),
                '-' | '_' => anchor.push(c),
                c if c.is_alphanumeric() => anchor.extend(c.to_lowercase()),
                _ => {}
            }
        }
        let again = |n: &usize| n.checked_sub(1).map(|n| format!("{anchor}-{}", n + 1));
        let free = (0..).map(|n| again(&n).unwrap_or_else(|| anchor.clone()));
        let anchor = { free }.find(|a| !found.contains(a)).unwrap();
        found.push(anchor);
    }
    found
}

#[test]
fn anchors_are_those_of_the_reader() {
    let prose = [
        (1, "# What `check` says: a, b"),
        (2, "#no heading"),
        (3, "## Twice"),
        (4, "## Twice"),
    ];
    assert_eq!(anchors(&prose), ["what-check-says-a-b", "twice", "twice-1"]);
}

#[test]
fn what_stands_in_code_is_no_link() {
    let text = "[a](b.md) and `[c](d.md)`\n```\n[e](f.md)\n```\n[g](#h) [i](https://j.example)";
    let (blocks, prose) = split(text);
    assert_eq!(blocks.len(), 1);
    let found = links(&prose);
    let found: Vec<&str> = found.iter().map(|l| l.target.as_str()).collect();
    assert_eq!(found, ["b.md", "#h"]);
}
