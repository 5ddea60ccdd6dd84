//! The reference interpreter with the options of Click's command, as the data tests run it; it is not installed.
//!
//! ```text
//! click-reference [-q] [-e TEXT | -f FILE | FILE] [-h HANDLER]… [-o FILE] [NAME=VALUE]…
//! click-reference --flatten …        prints the flat configuration
//! click-reference --provides CLASS…  whether these classes are there
//! ```
//!
//! `--simtime` and `-j N` are accepted: time is always simulated, and one packet runs after the other.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use millrace_click::elements;
use millrace_click::error::Error;
use millrace_click::interpreter::{Bounds, Ended, Folder, Host, Router};
use millrace_click::language::{Graph, Limits, flatten, parse};

#[derive(Default)]
struct Options {
    quit: bool,
    flatten: bool,
    text: Option<String>,
    file: Option<String>,
    handlers: Vec<String>,
    output: Option<String>,
    defines: Vec<(String, String)>,
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(word) = words.next() {
        let mut value = |rest: &str| match rest {
            "" => words.next().ok_or_else(|| format!("{word} needs a value")),
            rest => Ok(rest.to_owned()),
        };
        match word.as_str() {
            "--flatten" => options.flatten = true,
            "--simtime" | "-R" => {}
            "-" => options.file = None,
            "--" => {}
            long if long.starts_with("--simtime") => {}
            short if short.starts_with('-') => {
                let mut rest = &short[1..];
                while let Some(letter) = rest.chars().next() {
                    rest = &rest[letter.len_utf8()..];
                    match letter {
                        'q' => options.quit = true,
                        'e' => options.text = Some(value(rest)?),
                        'f' => options.file = Some(value(rest)?),
                        'h' => options.handlers.push(value(rest)?),
                        'o' => options.output = Some(value(rest)?),
                        'j' => drop(value(rest)?),
                        _ => return Err(format!("unknown option {short}")),
                    }
                    if letter != 'q' {
                        break;
                    }
                }
            }
            word => match word.split_once('=') {
                Some((name, value))
                    if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') =>
                {
                    options.defines.push((name.to_owned(), value.to_owned()));
                }
                _ => options.file = Some(word.to_owned()),
            },
        }
    }
    Ok(options)
}

fn graph(options: &Options) -> Result<Graph, Vec<Error>> {
    let failed = |what: String| {
        vec![Error {
            place: None,
            what,
            help: "name a file that can be read".into(),
        }]
    };
    let mut host = Folder {
        folder: PathBuf::from("."),
    };
    let (name, text) = match (&options.text, &options.file) {
        (Some(text), _) => ("config", text.clone()),
        (None, file) => {
            let name = file.as_deref().unwrap_or("-");
            let bytes = host.read(name).map_err(failed)?;
            (name, String::from_utf8_lossy(&bytes).into_owned())
        }
    };
    let mut library = |from: &str, name: &str| {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        Ok((path.display().to_string(), text))
    };
    let limits = Limits::default();
    let mut file = parse(&text, name, &limits, &mut library)?;
    for define in &options.defines {
        file.scope.defines.retain(|d| d.0 != define.0);
        file.scope.defines.push(define.clone());
    }
    flatten(&file, &limits)
}

/// Errors as Click prints them.
fn report(errors: &[Error]) {
    for error in errors {
        match &error.place {
            Some(place) => eprintln!("{place}: {}", error.what.replace('`', "'")),
            None => eprintln!("{}", error.what),
        }
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.peek().map(String::as_str) == Some("--provides") {
        let known = |name: &str| elements::find(name).is_some();
        let all = words.skip(1).filter(|w| w != "provides");
        let missing = all.filter(|w| match w.strip_prefix('!') {
            Some(name) => known(name),
            None => !known(w),
        });
        return ExitCode::from(u8::from(missing.count() > 0));
    }
    let options = match options(words) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let graph = match graph(&options) {
        Ok(graph) => graph,
        Err(errors) => {
            report(&errors);
            return ExitCode::FAILURE;
        }
    };
    if let Some(path) = options.output.as_deref().or(options.flatten.then_some("-")) {
        let mut host = Folder {
            folder: PathBuf::from("."),
        };
        if let Err(why) = host.write(path, graph.to_string().as_bytes(), false) {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
        if options.flatten {
            return ExitCode::SUCCESS;
        }
    }
    let host = Rc::new(RefCell::new(Folder {
        folder: PathBuf::from("."),
    }));
    let mut router = match Router::new(graph, Bounds::default(), host) {
        Ok(router) => router,
        Err(errors) => {
            // A graph may be printed although its classes are unknown.
            if options.quit && options.output.is_some() && options.handlers.is_empty() {
                return ExitCode::SUCCESS;
            }
            report(&errors);
            eprintln!("Router could not be initialized!");
            return ExitCode::FAILURE;
        }
    };
    if !options.quit
        && let Ended::Failed(why) = router.run()
    {
        eprintln!("{why}");
        return ExitCode::FAILURE;
    }
    let mut status = ExitCode::SUCCESS;
    for handler in &options.handlers {
        match router.read(handler, "") {
            Ok(text) => {
                if options.handlers.len() > 1 {
                    println!("{handler}:");
                }
                print!("{text}");
                if !text.ends_with('\n') {
                    println!();
                }
                if options.handlers.len() > 1 {
                    println!();
                }
            }
            Err(why) => {
                eprintln!("{why}");
                status = ExitCode::FAILURE;
            }
        }
    }
    status
}
