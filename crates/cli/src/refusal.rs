//! Refusals as people read them: the author's own line, the cause, the fix.

use std::io::Read;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use millrace_chain::Place;
use millrace_check::facts::Refusal;
use millrace_object::program::Line;
use rustix::fs::{Mode, OFlags};

/// Bytes of a line that is shown, at most.
const MOST_LINE: usize = 1000;
/// Bytes of a source that is shown, at most.
const MOST_SOURCE: u64 = 4 << 20;

/// A refusal as JSON: `line` is the number of the source line, none where it is not known.
pub fn document(refusal: &Refusal) -> serde_json::Value {
    let line = refusal.line.as_ref();
    serde_json::json!({
        "instruction": refusal.instruction,
        "line": line.map(|l| l.line),
        "reason": refusal.reason,
        "remedy": refusal.remedy,
        "rule": refusal.rule,
        "function": refusal.function,
        "text": refusal.text,
        "file": line.map(|l| &*l.file),
        "column": line.map(|l| l.column),
        "source": line.map(|l| &*l.text),
    })
}

/// A refusal as text, with the source around it when it is a file below `folder`, where the function is.
pub fn text(refusal: &Refusal, folder: &Path) -> String {
    let Some(line) = &refusal.line else {
        return plain(refusal, &format!("function {}", refusal.function));
    };
    let place = format!("{}:{}", line.file, line.line);
    // What is on disk may have changed since it was compiled; then only its record is true.
    let source = source(&line.file, folder).filter(|s| recorded(s, line));
    let (text, first) = match &source {
        Some(source) => around(source, line.line as usize),
        None => (line.text.to_string(), line.line as usize),
    };
    let Some(span) = span(&text, first, line, source.is_some()) else {
        return plain(refusal, &place);
    };
    let snippet = Snippet::source(&*text)
        .line_start(first)
        .fold(false)
        .path(&*line.file)
        .annotation(AnnotationKind::Primary.span(span).label(&*refusal.text));
    let group = Group::with_title(
        Level::ERROR
            .primary_title(&*refusal.reason)
            .id(refusal.rule),
    )
    .element(snippet)
    .element(Level::NOTE.message(format!(
        "instruction {} of {}",
        refusal.instruction, refusal.function
    )))
    .element(Level::HELP.message(&*refusal.remedy));
    renderer().render(&[group])
}

/// A line of a chain file with what is meant in it marked; none for a line that nobody would read on a terminal.
pub fn excerpt(file: &Path, place: &Place) -> Option<String> {
    let marked = place.text.get(place.marked.clone())?;
    if marked.is_empty() || place.text.len() > MOST_LINE {
        return None;
    }
    let file = file.display().to_string();
    let snippet = Snippet::source(&*place.text)
        .line_start(place.line)
        .fold(false)
        .path(&*file)
        .annotation(AnnotationKind::Primary.span(place.marked.clone()));
    let group = Group::with_level(Level::ERROR).element(snippet);
    Some(renderer().render(&[group]))
}

/// A source that an object names. Who writes the object chooses the name, so nothing is opened that is not below the
/// folder, nothing but a regular file is read, and not more than a source may have.
fn source(file: &str, folder: &Path) -> Option<String> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let path = Path::new(file).canonicalize().ok()?;
    if !path.starts_with(folder.canonicalize().ok()?) {
        return None;
    }
    // A FIFO that took the file's place meanwhile is not waited for.
    let file = rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    );
    let file = std::fs::File::from(file.ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(MOST_SOURCE + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MOST_SOURCE).then_some(text)
}

fn renderer() -> Renderer {
    if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        Renderer::styled()
    } else {
        Renderer::plain()
    }
}

fn plain(refusal: &Refusal, place: &str) -> String {
    format!(
        "error[{}]: {}\n  at {place}\n  instruction {}: {}\nhelp: {}",
        refusal.rule, refusal.reason, refusal.instruction, refusal.text, refusal.remedy
    )
}

fn recorded(source: &str, line: &Line) -> bool {
    let found = source.lines().nth((line.line as usize).saturating_sub(1));
    found.is_some_and(|text| text.trim() == line.text.trim())
}

/// Two lines before and after, and the number of the first.
fn around(source: &str, line: usize) -> (String, usize) {
    let first = line.saturating_sub(2).max(1);
    let lines: Vec<_> = source
        .lines()
        .skip(first - 1)
        .take(line + 3 - first)
        .collect();
    (lines.join("\n"), first)
}

/// Where the line stands in the text, from its column (or its first word) to its end.
fn span(text: &str, first: usize, line: &Line, whole: bool) -> Option<std::ops::Range<usize>> {
    let index = (line.line as usize).checked_sub(first)?;
    let start: usize = text.lines().take(index).map(|l| l.len() + 1).sum();
    let this = text.lines().nth(index)?;
    let indent = this.len() - this.trim_start().len();
    let column = (line.column as usize)
        .checked_sub(1)
        .filter(|c| whole && *c < this.len());
    let from = column
        .filter(|c| this.is_char_boundary(*c))
        .unwrap_or(indent)
        .max(indent);
    let to = this.trim_end().len();
    (from < to).then_some(start + from..start + to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: Option<Line>) -> Refusal {
        Refusal {
            function: "f".into(),
            instruction: 7,
            text: "r0 = *(u8 *)(r1 + 14)".into(),
            line,
            rule: "packet-bounds",
            reason: "byte 14 may lie behind the packet's end".into(),
            remedy: "compare with data_end first".into(),
        }
    }

    fn at(file: &str, line: u32, column: u32, text: &str) -> Option<Line> {
        Some(Line {
            file: file.into(),
            line,
            column,
            text: text.into(),
        })
    }

    #[test]
    fn the_authors_line_is_shown_with_what_stands_around_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f.c");
        std::fs::write(&file, "one\ntwo\n    x = p[14];\nfour\n").unwrap();
        let shown = text(
            &refusal(at(file.to_str().unwrap(), 3, 9, "x = p[14];")),
            dir.path(),
        );
        for part in [
            "f.c:3:9",
            "x = p[14];",
            "two",
            "packet-bounds",
            "instruction 7",
            "data_end",
        ] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
    }

    #[test]
    fn a_file_that_changed_or_is_gone_is_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f.c");
        std::fs::write(&file, "other\n").unwrap();
        for line in [1, 900] {
            let shown = text(
                &refusal(at(file.to_str().unwrap(), line, 5, "x = p[14];")),
                dir.path(),
            );
            assert!(
                shown.contains("x = p[14];") && !shown.contains("other"),
                "{shown}"
            );
        }
        let shown = text(&refusal(at("/nowhere.c", 3, 0, "")), dir.path());
        assert!(
            shown.contains("/nowhere.c:3") && shown.contains("help: compare"),
            "{shown}"
        );
        assert!(text(&refusal(None), dir.path()).contains("function f"));
    }

    #[test]
    fn nothing_is_opened_that_is_no_source_below_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (mine, other) = (dir.path().join("mine"), dir.path().join("other"));
        for folder in [&mine, &other] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("f.c"), "one\nx\n").unwrap();
        }
        std::os::unix::fs::symlink(other.join("f.c"), mine.join("link.c")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", mine.join("zero.c")).unwrap();
        std::fs::write(mine.join("large.c"), vec![b'x'; MOST_SOURCE as usize + 1]).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(mine.join("fifo.c"))
            .status();
        assert!(made.unwrap().success());
        let opened = |file: &Path| source(file.to_str().unwrap(), &mine).is_some();
        assert!(opened(&mine.join("f.c")));
        for name in ["link.c", "zero.c", "fifo.c", "large.c", "../other/f.c"] {
            assert!(!opened(&mine.join(name)), "{name}");
        }
        assert!(!opened(Path::new("/dev/zero")));
        assert!(!opened(Path::new("/proc/self/status")));
    }
}
