//! Completions of a word that is being typed in the shell: verbs and flags, which the command's own definition says,
//! and names of elements, objects, keys and parameters, which the run is asked for.

use clap::Command;

/// Source of the names that exist.
pub trait Known {
    /// of elements of the chain
    fn elements(&self) -> Vec<String>;
    /// of state objects
    fn objects(&self) -> Vec<String>;
    /// some keys of an object
    fn keys(&self, object: &str) -> Vec<String>;
    /// of parameters
    fn params(&self) -> Vec<String>;
    /// of functions that can be attached
    fn functions(&self) -> Vec<String>;
    /// of guests that can be moved
    fn guests(&self) -> Vec<String>;
}

/// The word in front of the cursor: where it begins, and the words before it. A word in quotes is one.
#[must_use]
pub fn words(line: &str) -> (usize, Vec<String>) {
    let (mut begin, mut quote) = (0, None);
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c.is_whitespace() => begin = at + c.len_utf8(),
            None => {}
        }
    }
    let before = line.get(..begin).unwrap_or_default();
    (begin, shell_words::split(before).unwrap_or_default())
}

/// Completions of the word `partial` behind these words, sorted, each as it is to be typed.
#[must_use]
pub fn candidates(
    root: &Command,
    before: &[String],
    partial: &str,
    known: &dyn Known,
) -> Vec<String> {
    let mut command = root;
    let (mut place, mut first, mut value_of) = (0, None, None);
    for word in before {
        let sub = command.find_subcommand(word);
        match (value_of.take(), sub) {
            (Some(_), _) => {}
            (None, _) if word.starts_with('-') => {
                let flag = word.trim_start_matches('-');
                let mut flags = command.get_arguments();
                value_of = flags
                    .find(|a| a.get_long() == Some(flag) && a.get_action().takes_values())
                    .map(|a| a.get_id().to_string());
            }
            (None, Some(sub)) if place == 0 => command = sub,
            (None, _) => {
                first.get_or_insert(word);
                place += 1;
            }
        }
    }
    let argument = value_of.or_else(|| {
        let all: Vec<_> = command.get_positionals().collect();
        // The last one may be given again and again.
        let many = all
            .last()
            .filter(|a| a.get_num_args().is_some_and(|n| n.max_values() > 1));
        let own = all.get(place).or(many.filter(|_| place > 0));
        own.map(|a| a.get_id().to_string())
    });
    let path = command.get_name();
    let mut all = match argument.as_deref() {
        _ if partial.starts_with('-') => {
            let flags = command.get_arguments().filter_map(clap::Arg::get_long);
            flags.map(|flag| format!("--{flag}")).collect()
        }
        Some("element" | "order" | "before" | "after") => known.elements(),
        Some("guest") => known.guests(),
        Some("key") => known.keys(first.map_or("", String::as_str)),
        Some("setting") => known.params().into_iter().map(|p| p + "=").collect(),
        Some("word") => known.functions(),
        Some("name") if path != "attach" && path != "replace" => known.objects(),
        Some(_) => Vec::new(),
        None if place == 0 => {
            let verbs = command.get_subcommands().map(|s| s.get_name().to_owned());
            verbs.collect()
        }
        None => Vec::new(),
    };
    all = all
        .iter()
        .map(|word| quoted(word))
        .filter(|w| w.starts_with(partial))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// A word in quotes, where it needs some.
fn quoted(word: &str) -> String {
    // A parameter is gone on with behind its `=`.
    match word.ends_with('=') {
        true => word.to_owned(),
        false => shell_words::quote(word).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::shell::Line;
    use super::*;

    struct Names;

    impl Known for Names {
        fn elements(&self) -> Vec<String> {
            vec!["fw".into(), "tcpdump".into()]
        }
        fn objects(&self) -> Vec<String> {
            vec!["fw:flows".into(), "fw:blocked".into()]
        }
        fn keys(&self, object: &str) -> Vec<String> {
            assert_eq!(object, "fw:flows");
            vec!["10.0.0.1 be16:80".into(), "7".into()]
        }
        fn params(&self) -> Vec<String> {
            vec!["limit".into()]
        }
        fn functions(&self) -> Vec<String> {
            vec!["nat".into(), "nop".into()]
        }
        fn guests(&self) -> Vec<String> {
            vec!["prads".into()]
        }
    }

    fn complete(line: &str) -> Vec<String> {
        let mut command = Line::command();
        command.build();
        let (begin, before) = words(line);
        candidates(&command, &before, &line[begin..], &Names)
    }

    #[test]
    fn what_can_stand_at_a_place_is_offered() {
        let cases: [(&str, &[&str]); 15] = [
            ("st", &["stats", "stop"]),
            ("chain re", &["reorder", "replace"]),
            ("chain detach ", &["fw", "tcpdump"]),
            ("chain replace fw n", &["nat", "nop"]),
            ("chain attach nop --after t", &["tcpdump"]),
            ("chain attach nop --after fw --be", &["--before"]),
            ("chain attach nop --name x", &[]),
            ("chain reorder fw t", &["tcpdump"]),
            ("migrate p", &["prads"]),
            ("set l", &["limit="]),
            ("map get fw:f", &["fw:flows"]),
            ("map get fw:flows ", &["'10.0.0.1 be16:80'", "7"]),
            ("map get fw:flows '10", &["'10.0.0.1 be16:80'"]),
            ("nonsense ", &[]),
            ("map nonsense ", &[]),
        ];
        for (line, expected) in cases {
            let got = complete(line);
            assert_eq!(got, expected, "{line}");
        }
        assert!(complete("").len() > 6);
    }
}
