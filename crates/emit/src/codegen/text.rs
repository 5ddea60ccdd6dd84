//! Generated text that knows its own line numbers, and the escaping of names that come from files.

use std::fmt::Write;

use millrace_object::program::Line;

/// Where trailing comments begin, in columns.
const COMMENT_COLUMN: usize = 64;

/// The greatest line number that C11 lets a `#line` say (6.10.4).
const MAX_LINE: u32 = 0x7fff_ffff;

/// C source under construction.
#[derive(Default)]
pub struct Text {
    out: String,
    /// newlines written so far
    newlines: u32,
    /// what the preprocessor believes the next line is, while the author's numbering is on
    presumed: Option<(std::sync::Arc<str>, u32)>,
    /// the author's line that was shown last, so that its text appears once
    shown: Option<Line>,
}

impl Text {
    /// Adds whole lines.
    pub fn lines(&mut self, text: &str) {
        for line in text.lines() {
            self.push(line);
        }
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.push("");
    }

    /// Adds a line, indented, with a comment behind it.
    pub fn line(&mut self, depth: usize, text: &str, comment: &str) {
        let mut line = "\t".repeat(depth);
        line.push_str(text);
        if !comment.is_empty() {
            let width = depth * 8 + text.chars().count();
            let _ = write!(
                line,
                "{:pad$} /* {} */",
                "",
                comment_text(comment),
                pad = COMMENT_COLUMN.saturating_sub(width)
            );
        }
        self.push(&line);
    }

    /// Says that what follows comes from this line of the author's source.
    pub fn at(&mut self, line: Option<&Line>) {
        let Some(line) = line else { return };
        let presumed = self
            .presumed
            .as_ref()
            .map(|(file, number)| (file.as_ref(), *number));
        if presumed == Some((line.file.as_ref(), line.line)) {
            return;
        }
        let mut directive = format!("#line {}", line.line.clamp(1, MAX_LINE));
        if presumed.map(|(file, _)| file) != Some(line.file.as_ref()) {
            let _ = write!(directive, " {}", string(line.file.as_bytes()));
        }
        let again = self
            .shown
            .as_ref()
            .is_some_and(|shown| shown.file == line.file && shown.line == line.line);
        if !again && !line.text.is_empty() {
            let _ = write!(directive, " /* {} */", comment_text(&line.text));
        }
        self.push(&directive);
        self.presumed = Some((line.file.clone(), line.line));
        self.shown = Some(line.clone());
    }

    /// Returns to the numbering of the generated file itself.
    pub fn own_numbering(&mut self, file: &str) {
        if self.presumed.take().is_some() {
            let next = self.newlines + 2;
            self.push(&format!("#line {next} {}", string(file.as_bytes())));
            self.presumed = None;
        }
        self.shown = None;
    }

    /// The text.
    pub fn finish(self) -> String {
        self.out
    }

    fn push(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
        self.newlines += 1;
        if let Some((_, number)) = &mut self.presumed {
            *number = number.saturating_add(1);
        }
    }
}

/// Bytes as a C string literal; nothing in them can end it.
pub fn string(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for &b in bytes {
        match b {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(b));
            }
            // A question mark could begin a trigraph.
            0x20..=0x7e if b != b'?' => out.push(char::from(b)),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// Text that can stand in a block comment: it cannot end or nest one.
pub fn comment_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(' '),
            // Names of fields that are cut short have it.
            '…' => out.push('…'),
            c if c.is_control() || !c.is_ascii() => out.push('?'),
            '/' if out.ends_with('*') => out.push_str(" /"),
            '*' if out.ends_with('/') => out.push_str(" *"),
            '\\' => out.push_str("\\ "),
            c => out.push(c),
        }
    }
    out
}

/// A name from a file as (part of) a C identifier.
pub fn identifier(name: &str) -> String {
    name.chars()
        .take(40)
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect()
}

/// An unsigned literal of this value, decimal while that is how people say it.
pub fn unsigned(value: u64) -> String {
    match value {
        0..=1024 => format!("{value}"),
        1025..=0xffff_ffff => format!("{value:#x}u"),
        _ => format!("{value:#x}ull"),
    }
}

/// A signed literal of this value.
pub fn signed(value: i64) -> String {
    match value {
        i64::MIN => "INT64_MIN".into(),
        -0x7fff_ffff..=0x7fff_ffff => format!("{value}"),
        _ => format!("{value}ll"),
    }
}
