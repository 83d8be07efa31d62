//! `--from`: a run measured again as in its result; names of results with date and host.

use std::fs;

use crate::support::{document, read_json, Launch, Scratch, SHORT};

#[test]
fn a_run_is_repeated_with_its_options() {
    let scratch = Scratch::new();
    let options = ["--types", "2", "--backend", "posix", "--space", "200M", "--seed", "7", "--quiet"];
    Launch::new(2).args(SHORT).args(options).into(&scratch).run().expect(0);
    let first = document(&scratch);
    let again = scratch.join("again");
    for from in ["out.json", "out.jsonl"] {
        let prefix = again.with_extension(from.replace('.', "-"));
        let launch = Launch::new(2).arg("--from").arg(scratch.join(from)).args(["--seed", "8", "--out"]).arg(&prefix);
        launch.run().expect(0);
        let second =
            read_json(&prefix.with_file_name(format!("{}.json", prefix.file_name().unwrap().to_str().unwrap())));
        for (key, value) in first["config"].as_object().unwrap() {
            match key.as_str() {
                "seed" => assert_eq!((value, &second["config"][key]), (&7.into(), &8.into())),
                "out" => {}
                _ => assert_eq!(value, &second["config"][key], "{key}"),
            }
        }
    }
}

#[test]
fn the_result_of_another_command_is_refused() {
    let scratch = Scratch::new();
    let imb = ["imb", "P_Write_Priv", "--msglog", "12:12", "--quiet"];
    Launch::new(1).args(imb).into(&scratch).run().expect(0);
    let file = scratch.join("out.json");
    Launch::new(1).arg("io").arg("--from").arg(&file).run().expect(2).says(&["a result of `beff-raw imb`", "Type imb"]);
    // Without a command it is that of the result.
    let run = Launch::new(1).arg("--from").arg(&file).arg("P_Read_Priv").run();
    run.expect(0);
    assert!(run.stdout.contains("P_Read_Priv") && !run.stdout.contains("P_Write_Priv"), "{run}");
}

#[test]
fn names_of_results_may_have_date_and_host() {
    let scratch = Scratch::new();
    let disk = scratch.join("disk");
    fs::create_dir(&disk).unwrap();
    let imb = ["imb", "P_Write_Priv", "--msglog", "12:12", "--path"];
    let run = Launch::new(2).args(imb).arg(&disk).arg("--out").arg(scratch.join("{host}-{date}")).run();
    run.expect(0);
    let files: Vec<String> = scratch.list("").into_iter().filter(|name| name.ends_with(".json")).collect();
    assert!(files.len() == 1 && !files[0].contains('{') && files[0].ends_with("Z.json"), "{files:?}");
}
