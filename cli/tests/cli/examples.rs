//! The README of the examples tells the truth.

use super::{examples, run, stable};
use std::fs;

#[test]
fn the_readme_shows_what_its_commands_print() {
    let readme = fs::read_to_string(examples().join("README.md")).unwrap();
    let mut commands = 0;
    for block in readme.split("```console\n").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        for session in block.split("$ gibbsite ").skip(1) {
            let (command, shown) = session.split_once('\n').unwrap();
            let run = run(&command.split(' ').collect::<Vec<_>>());
            assert_eq!(stable(&(run.stderr + &run.stdout)), stable(shown), "{command}");
            assert_eq!(run.code, 0, "{command}");
            commands += 1;
        }
    }
    assert_eq!(commands, 13);
}

#[test]
fn the_readme_names_every_example() {
    let readme = fs::read_to_string(examples().join("README.md")).unwrap();
    for name in super::listing(&examples()) {
        assert!(name == "README.md" || readme.contains(&name), "{name}");
    }
}
