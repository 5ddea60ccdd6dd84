//! Tables of cases in tests, as text: a case a line, columns between `|`.
#![allow(clippy::panic)]

/// The rows of a table. Spaces around a column are none of it: `\s` is a space, and `\n` the end of a line. Empty lines and those that
/// begin with `//` are no rows.
///
/// # Panics
/// A row has more or fewer columns.
pub fn rows<const N: usize>(table: &str) -> impl Iterator<Item = [String; N]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    lines.filter(|line| !line.starts_with("//")).map(|line| {
        let columns = line.split('|').map(str::trim);
        let columns = columns.map(|column| column.replace("\\n", "\n").replace("\\s", " "));
        let columns = columns.collect::<Vec<_>>().try_into();
        columns.unwrap_or_else(|wrong| panic!("not {N} columns: {wrong:?}"))
    })
}
