//! What two machines of a cluster compare of their functions.

use std::path::Path;

use millrace::{Asked, Make, cluster};
use millrace_turns::of_today;

const SOURCE: &str = include_str!("../../../nfs/firewall/firewall.c");

/// All by which a function has to be equal to another machine's, made of this source in this folder.
fn parts(folder: &Path, source: &str, make: &Make) -> Vec<Vec<u8>> {
    std::fs::create_dir_all(folder).unwrap();
    let file = folder.join("firewall.c");
    std::fs::write(&file, source).unwrap();
    let found = millrace::find(file.to_str().unwrap()).unwrap();
    let written = found.read(make).unwrap();
    let proved = written.check(make.begin()).unwrap();
    let asked = Asked {
        secret: Some([7; 32]),
        ..Asked::default()
    };
    let within = (millrace::model::SECONDS, make.begin());
    let mut model = proved.model_for(asked.purpose(), within, &mut || {});
    let arranged = proved.arrange(&mut model, &asked).unwrap();
    let arranged = arranged.several(asked.cores).unwrap();
    let function = found.load(&arranged.divided(make), &mut |_| {}).unwrap();
    cluster::successor(&function).unwrap().parts.clone()
}

#[test]
fn a_source_is_one_version_wherever_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let made = |place: &str, source: &str| {
        let folder = folder.path().join(place);
        parts(&folder, source, &Make::default())
    };
    let one = made("a", SOURCE);
    assert!(one == made("longer/and/deeper", SOURCE), "the folder");
    let later = format!("/* A line more. */\n{SOURCE}");
    assert!(one == made("b", &later), "a comment");
    // What it does and holds.
    let changes = [
        (
            "code",
            "p->port == WAN && !map_get",
            "p->port == LAN && !map_get",
        ),
        ("state", ".capacity = 65536", ".capacity = 32768"),
        ("life of entries", "SECONDS(60)", "SECONDS(61)"),
        ("a reason", "no_flow", "no_session"),
        ("ports", "LAN", "INSIDE"),
    ];
    for (what, from, to) in of_today("changes of a source", changes, 3) {
        let other = SOURCE.replace(from, to);
        assert_ne!(other, SOURCE, "{what}");
        assert!(one != made(what, &other), "{what}");
    }
    let wider = Make {
        capacities: vec![("flows".to_owned(), 131_072)],
        ..Make::default()
    };
    assert!(
        one == parts(&folder.path().join("c"), SOURCE, &wider),
        "a larger machine"
    );
}
