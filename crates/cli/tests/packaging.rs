//! What `make install` and `make deb` put where, the service's unit, and what a service manager is told.

use millrace_turns::its_turn;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::typed::{self, Asked};
use crate::common::{output, root};

/// A script of the repository, for the command of this build.
fn script(name: &str) -> Command {
    let mut command = Command::new(root().join("scripts").join(name));
    command
        .current_dir(root())
        .env("MILLRACE_COMMAND", env!("CARGO_BIN_EXE_millrace"))
        .env("PROFILE", "dev");
    command
}

fn succeeds(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stdout).into_owned();
    let wrong = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}:\n{said}{wrong}");
    said
}

/// Installs below a folder as if it were the root of the file system: a prefix and a folder for configuration in it.
fn installed(folder: &Path) -> PathBuf {
    let prefix = folder.join("usr");
    succeeds(
        script("install.sh")
            .env("PREFIX", &prefix)
            .env("SYSCONFDIR", folder.join("etc")),
    );
    prefix
}

/// The installed command, in the root folder, with nothing that names the repository.
fn command(prefix: &Path) -> Command {
    let mut command = Command::new(prefix.join("bin/millrace"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env(
            "MILLRACE_CACHE",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"),
        )
        .current_dir("/");
    command
}

fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$1\"", "sh", program])
        .stdout(Stdio::null())
        .status();
    let has = found.is_ok_and(|status| status.success());
    if !has {
        println!("skipped: {program} is not installed");
    }
    has
}

#[test]
fn functions_of_an_installation_are_found_from_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = installed(folder.path());
    let capture = root().join("captures/talk.pcap").canonicalize().unwrap();
    let mut run = command(&prefix);
    run.args(["run", "nat", "--control", "none", "--in"]);
    run.arg(&capture).args(["--split", "lan=10.0.0.0/24"]);
    let (ran, said) = output(&mut run);
    assert!(ran.status.success(), "{said}");
    let account = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(account.contains("each with one fate"), "{account}");
    // The packet tests lie beside the function.
    let (tested, said) = output(command(&prefix).args(["test", "nop"]));
    assert!(tested.status.success(), "{said}");
    // An error names the folders that were searched.
    let (wrong, said) = output(command(&prefix).args(["check", "nosuch"]));
    assert_eq!(wrong.status.code(), Some(2));
    let place = prefix.join("share/millrace/nfs");
    assert!(said.contains(&place.display().to_string()), "{said}");
    assert!(said.contains("firewall"), "{said}");
    for file in [
        "include/millrace/nf.h",
        "share/man/man1/millrace-run.1.gz",
        "share/bash-completion/completions/millrace",
        "share/doc/millrace/docs/operate.md",
        "lib/sysusers.d/millrace.conf",
    ] {
        assert!(prefix.join(file).is_file(), "{file}");
    }
    let example = folder.path().join("etc/millrace/edge.toml.example");
    assert!(example.is_file());
    // Nothing of the build's folders is in what is installed.
    let unit = std::fs::read_to_string(prefix.join("lib/systemd/system/millrace@.service"));
    let unit = unit.unwrap();
    let executes = format!("ExecStart={}/bin/millrace run", prefix.display());
    assert!(
        unit.contains(&executes) && !unit.contains("BINDIR"),
        "{unit}"
    );
}

#[test]
fn a_prefix_that_is_no_whole_path_and_a_build_that_is_not_there_are_refused() {
    for (variable, value, said) in [
        ("PREFIX", "usr", "write the whole path"),
        ("MILLRACE_COMMAND", "/no/such/file", "make build"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut install = script("install.sh");
        install.env("DESTDIR", folder.path()).env(variable, value);
        let refused = install.output().unwrap();
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(text.contains(said), "{text}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn systemd_takes_the_units() {
    if !has("systemd-analyze") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let prefix = installed(folder.path());
    let units = ["millrace@.service", "millrace-node@.service"];
    let units = units.map(|unit| prefix.join("lib/systemd/system").join(unit));
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args(&units)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    // Units of the machine that it looks at on the way are not ours.
    let ours = said.lines().filter(|l| l.contains("millrace"));
    assert_eq!(ours.collect::<Vec<_>>(), Vec::<&str>::new(), "{said}");
}

#[test]
fn a_package_has_its_files_its_dependencies_and_its_scripts() {
    if !has("dpkg-deb") || !has("dpkg-shlibdeps") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    succeeds(script("deb.sh").env("OUT", folder.path()));
    let made = std::fs::read_dir(folder.path()).unwrap();
    let packages: Vec<_> = made.map(|e| e.unwrap().path()).collect();
    let [package] = packages.as_slice() else {
        panic!("{packages:?}");
    };
    let ask = |what: &str| succeeds(Command::new("dpkg-deb").arg(what).arg(package));
    let control = ask("--field");
    let depends = control.lines().find_map(|l| l.strip_prefix("Depends: "));
    let depends = depends.unwrap();
    for needed in [
        "libc6 (>= ",
        "libelf1",
        "clang-19",
        "libbpf-dev",
        "linux-libc-dev",
    ] {
        assert!(depends.contains(needed), "{needed}: {depends}");
    }
    let contents = ask("--contents");
    for file in [
        "./usr/bin/millrace",
        "./usr/share/millrace/nfs/firewall/firewall.c",
        "./usr/include/millrace/nf.h",
        "./usr/lib/systemd/system/millrace@.service",
        "./usr/lib/systemd/system/millrace-node@.service",
        "./usr/share/doc/millrace/copyright",
        "./etc/millrace/edge.toml.example",
    ] {
        let line = contents.lines().find(|l| l.ends_with(&format!(" {file}")));
        let line = line.unwrap_or_else(|| panic!("no {file} in\n{contents}"));
        assert!(line.contains(" root/root "), "{line}");
    }
    assert!(!contents.contains("usr/local"), "{contents}");
    let parts = folder.path().join("control");
    succeeds(
        Command::new("dpkg-deb")
            .arg("--control")
            .arg(package)
            .arg(&parts),
    );
    let conffiles = std::fs::read_to_string(parts.join("conffiles")).unwrap();
    assert!(conffiles.contains("/etc/millrace/edge.toml.example"));
    for script in ["postinst", "prerm", "postrm"] {
        succeeds(Command::new("sh").arg("-n").arg(parts.join(script)));
    }
}

/// A service manager's socket, and what it is told.
struct Manager {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Manager {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        Self {
            socket,
            heard: Vec::new(),
        }
    }

    /// Listens until something holds of all that was told.
    fn until(&mut self, holds: impl Fn(&[String]) -> bool) -> bool {
        let end = Instant::now() + Duration::from_secs(60);
        while !holds(&self.heard) && Instant::now() < end {
            let mut buffer = [0; 1024];
            if let Ok(length) = self.socket.recv(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                self.heard.extend(text.lines().map(str::to_owned));
            }
        }
        holds(&self.heard)
    }
}

fn count(heard: &[String], line: &str) -> usize {
    heard.iter().filter(|h| *h == line).count()
}

#[test]
fn a_service_manager_is_told_of_readiness_progress_and_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let mut manager = Manager::at(&path);
    let capture = root().join("captures/talk.pcap");
    let mut child = crate::common::millrace()
        .args(crate::common::words(
            "run nop firewall --control none --out null:",
        ))
        .arg("--in")
        .arg(format!("mem:{}", capture.display()))
        .args(["--seconds", "60", "--json"])
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "200000")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(
        manager.until(|heard| count(heard, "WATCHDOG=1") >= 2),
        "{:?}",
        manager.heard
    );
    let heard = &manager.heard;
    assert_eq!(count(heard, "READY=1"), 1, "{heard:?}");
    let ready = heard.iter().position(|h| h == "READY=1");
    let alive = heard.iter().position(|h| h == "WATCHDOG=1");
    assert!(ready < alive, "{heard:?}");
    assert_eq!(count(heard, "STOPPING=1"), 0, "{heard:?}");
    Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    assert!(
        manager.until(|heard| count(heard, "STOPPING=1") == 1),
        "{:?}",
        manager.heard
    );
    assert!(child.wait().unwrap().success());
}

/// A worker that is in one packet for long makes no progress, whatever the thread does that looks at it.
#[test]
fn a_worker_that_hangs_in_a_function_is_not_covered_up() {
    let folder = tempfile::tempdir().unwrap();
    let slow = crate::budgets::program(folder.path(), crate::budgets::SLOW);
    let capture = folder.path().join("in.pcap");
    let fast = (0..64).map(|i| (i, vec![0; 60]));
    let all = fast.chain((64..96).map(|i| (i, vec![1; 60])));
    crate::common::capture(&capture, &all.collect::<Vec<_>>());
    let path = folder.path().join("notify");
    let mut manager = Manager::at(&path);
    let mut child = crate::common::millrace()
        .args(crate::common::words(
            "run --control none --burst 32 --out null:",
        ))
        .arg("--in")
        .arg(&capture)
        .arg(&slow)
        .arg("nop")
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "20000")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(
        manager.until(|heard| count(heard, "READY=1") == 1),
        "{:?}",
        manager.heard
    );
    // A hundred times as long as the manager would wait: at most what came before the packet was begun.
    let end = Instant::now() + Duration::from_secs(2);
    manager.until(|_| Instant::now() >= end);
    let heard = &manager.heard;
    assert!(count(heard, "WATCHDOG=1") <= 2, "{heard:?}");
    assert_eq!(count(heard, "STOPPING=1"), 0, "{heard:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Makes a package of this version, of the command of this build without what `strip` with these words takes out.
fn package(folder: &Path, version: &str, strip: &str) -> PathBuf {
    let command = folder.join("millrace");
    std::fs::create_dir_all(folder).unwrap();
    let mut stripped = Command::new("strip");
    stripped.args([strip, "-o"]).arg(&command);
    succeeds(stripped.arg(env!("CARGO_BIN_EXE_millrace")));
    let mut deb = script("deb.sh");
    deb.env("OUT", folder).env("VERSION", version);
    succeeds(deb.env("MILLRACE_COMMAND", command));
    let made = std::fs::read_dir(folder).unwrap().flatten();
    let mut packages = made.map(|e| e.path());
    packages
        .find(|p| p.extension().is_some_and(|e| e == "deb"))
        .unwrap()
}

/// Runs a script in a system that systemd has booted, with the package installed or beside it; what it said and its status. None
/// where none can be booted, which is said.
fn booted(package: &Path, script: &Path, output: &Path) -> Option<(String, String)> {
    let scripts = root().join("crates/cli/tests/packaging");
    let booted = Command::new(scripts.join("boot.sh"))
        .args([package, script, output])
        .output()
        .unwrap();
    if booted.status.code() == Some(77) {
        let why = String::from_utf8_lossy(&booted.stderr).into_owned();
        println!(
            "skipped: {}",
            why.trim().lines().last().unwrap_or("systemd does not boot")
        );
        return None;
    }
    assert!(booted.status.success(), "{booted:?}");
    let read = |name: &str| std::fs::read_to_string(output.join(name)).unwrap();
    let (said, status) = (read("said"), read("status"));
    Some((said, status.trim().to_owned()))
}

/// The package, installed in a system that systemd has booted: started, watched, started again, stopped, removed.
#[test]
fn the_service_of_the_package_runs_under_systemd() {
    if !its_turn("the package under systemd", 0, 4) {
        return;
    }
    if !has("dpkg-deb") || !has("dpkg-shlibdeps") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let package = package(folder.path(), "1", "--strip-all");
    let script = root().join("crates/cli/tests/packaging/service.sh");
    let Some((said, status)) = booted(&package, &script, folder.path()) else {
        return;
    };
    let boot = std::fs::read_to_string(folder.path().join("boot")).unwrap();
    assert_eq!(status, "0", "{said}\n{boot}");
    let lines: Vec<&str> = said.lines().collect();
    let has = |line: &str| assert!(lines.iter().any(|l| l.starts_with(line)), "{line}:\n{said}");
    has("user: millrace:/var/lib/millrace");
    has("runs as millrace");
    has("status: serving ");
    has("read: at least 2");
    has("reloaded: fw, more, and the flow is there");
    has("upgraded: the flow is there");
    has("killed: the flow is there");
    has("restarts: 2");
    has("result: success");
    has("done");
    // Of every thread: nothing is permitted, in effect or ambient.
    let sets: Vec<_> = lines.iter().filter(|l| l.starts_with("Cap")).collect();
    assert_eq!(sets.len(), 3, "{said}");
    assert!(
        sets.iter().all(|set| set.ends_with("\t0000000000000000")),
        "{said}"
    );
}

/// The page for operators, and what its words stand for where the test types it: `make deb` gives the package that was made before,
/// from the command of this build, as a release takes minutes to build; `sudo` is root's.
const PAGE: &str = "docs/operate.md";
const BEFORE: &str = r#"
set -eu
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
dpkg --purge millrace > /dev/null
cd "$(mktemp -d)"
mkdir target
make() {
    [ "$*" = deb ]
    rm -f target/*.deb
    cp /mnt/output/"$((++build))"/*.deb target/
}
sudo() {
    "$@" && return
    # Without a network apt-get cannot fetch what the package names and this machine has otherwise.
    [ "${*:1:2}" = "apt-get install" ]
    echo "skipped: $*"
    dpkg --force-depends -i "$3"
}
build=0
# Modules that are not optimised take a third of the time.
mkdir -p /run/systemd/system/millrace@.service.d
printf '[Service]\nEnvironment=MILLRACE_UNOPTIMISED=1\n' > /run/systemd/system/millrace@.service.d/test.conf
"#;

/// From the clone to an upgrade and a power cut, as the page has it.
#[test]
fn the_page_for_operators_is_typed_in_a_system_with_systemd() {
    if !its_turn("the page for operators under systemd", 2, 4) {
        return;
    }
    let tools = ["ping", "traceroute", "curl", "iperf3", "python3", "ip"];
    if !tools.iter().all(|t| has(t)) || !has("dpkg-deb") || !has("dpkg-shlibdeps") || !has("strip")
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let first = package(&file("1"), "1", "--strip-all");
    // Another build, by what dpkg and systemd see of it: a higher version, and other bytes.
    package(&file("2"), "2", "--strip-debug");
    let heading = "A NAT router, from the clone to an upgrade";
    let blocks = typed::blocks(PAGE, heading);
    let (words, all) = typed::script(PAGE, &blocks, folder.path(), "/mnt/output");
    assert!(!all.is_empty(), "the section shows nothing");
    let script = file("script");
    std::fs::write(&script, format!("#!/bin/bash\n{BEFORE}{words}")).unwrap();
    let Some((said, status)) = booted(&first, &script, folder.path()) else {
        return;
    };
    let printed = |asked: &Asked| std::fs::read_to_string(file(&asked.file())).ok();
    if status != "0" {
        let boot = std::fs::read_to_string(file("boot")).unwrap();
        let place = Asked::failed(&all, printed);
        panic!("{status}: {place}\nall that was printed beside:\n{said}\n{boot}");
    }
    for skipped in said.lines().filter(|l| l.starts_with("skipped: ")) {
        println!("{skipped}");
    }
    for asked in &all {
        asked.compare(&printed(asked).unwrap(), &said);
    }
}

/// The example is the recipe's, with what makes it a service.
#[test]
fn the_example_of_the_service_is_the_recipe() {
    let examples = root().join("packaging/examples/nat-router");
    let blocks = typed::blocks("docs/recipes.md", "A NAT router for a lab");
    let files = blocks
        .iter()
        .filter_map(|b| Some((b.file.as_ref()?, &b.text)));
    let mut compared = 0;
    for (name, text) in files {
        let there = std::fs::read_to_string(examples.join(name)).unwrap();
        let of_a_service = ["#", "ports = ", "state = ", "state-every = "];
        let lines = there.lines();
        let lines = lines.filter(|l| !of_a_service.iter().any(|start| l.starts_with(start)));
        assert!(lines.eq(text.lines()), "{name}: {there}");
        compared += 1;
    }
    assert_eq!(compared, 5);
}
