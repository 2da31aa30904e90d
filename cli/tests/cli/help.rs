//! Help pages.

use super::stdout;
use insta::assert_snapshot;

/// A help page without clap's spaces at the ends of lines.
fn help(args: &[&str]) -> String {
    stdout(args).lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn gibbsite() {
    assert_snapshot!(help(&["--help"]), @r"
    Learn large conditional random fields on a desk, run them on a microcontroller

    Usage: gibbsite <COMMAND>

    Commands:
      infer    Answer a query on a factor graph in UAI format: partition function, marginals, best
               assignment
      inspect  Say what a file holds: for UAI models, their size and how inference on them would go
      help     Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version
    ");
}

#[test]
fn infer() {
    assert_snapshot!(help(&["infer", "--help"]), @r#"
    Answer a query on a factor graph in UAI format: partition function, marginals, best assignment

    The model is a Markov or Bayesian network in UAI format; `-` is standard input, `.gz` and `.zst` are
    read as they are. Evidence is conditioned on first. The answer is exact whenever the junction tree
    fits in memory; otherwise `auto` falls back to belief propagation and says so (and "exact" is false
    in JSON).

    Text output is the UAI result format: `PR` and log10 Z; `MAR` and for each variable its arity and
    marginals; `MAP` and the assignment. Exit codes: 0 done; 1 the input is at fault (also evidence of
    probability zero); 2 wrong usage; 3 an approximation stopped before it converged (its result is
    written all the same).

    Usage: gibbsite infer [OPTIONS] --task <TASK> <MODEL.uai>

    Arguments:
      <MODEL.uai>
              The model, `-` for standard input

    Options:
          --evidence <FILE.evid>
              What is observed: the number of pairs, then pairs `variable label`, both counted from 0

          --task <TASK>
              What is asked

              Possible values:
              - pr:  The partition function, as log10 Z; for a Bayesian network with evidence, log10 of
                its probability
              - mar: Marginals of all variables
              - map: A most probable assignment

          --method <METHOD>
              How it is answered

              Possible values:
              - auto:     Exact if it fits in memory, else bp
              - junction: Exact, by a junction tree
              - tree:     Exact, for factor graphs without cycles; linear time
              - bp:       Loopy belief propagation
              - trw:      Tree-reweighted belief propagation, for pr and mar; log Z is an upper bound
              - gibbs:    Gibbs sampling, for mar and map
              - brute:    Exact, by enumerating all configurations

              [default: auto]

          --max-table-mib <M>
              Mebibytes that the tables of exact inference may take

              [default: 4096]

          --max-iter <N>
              bp, trw: most iterations

              [default: 1000]

          --tolerance <T>
              bp, trw: converged when no message changes by more than this

              [default: 1e-8]

          --damping <D>
              bp, trw: share of the old message in a new one, from 0 to below 1

              [default: 0.5]

          --sweeps <N>
              gibbs: sweeps that are averaged, after a tenth as many of burn-in

              [default: 10000]

          --json
              Print one JSON object instead of text

      -o, --output <FILE>
              Write the result to FILE, whole or not at all, instead of to standard output (`-`)

          --threads <N>
              Threads; all cores by default. The result does not depend on it

          --seed <N>
              Seed of everything random

              [default: 0]

          --quiet
              No warnings; errors are still told

      -v, --verbose
              Say on standard error what was read, done and how long it took

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Examples:
      gibbsite infer model.uai --task pr
      gibbsite infer model.uai --evidence model.uai.evid --task mar
      gibbsite infer model.uai.gz --task map --json
      gibbsite infer wide.uai --task pr --method trw        # an upper bound
    "#);
}

#[test]
fn infer_in_short() {
    assert_snapshot!(help(&["infer", "-h"]), @r"
    Answer a query on a factor graph in UAI format: partition function, marginals, best assignment

    Usage: gibbsite infer [OPTIONS] --task <TASK> <MODEL.uai>

    Arguments:
      <MODEL.uai>  The model, `-` for standard input

    Options:
          --evidence <FILE.evid>  What is observed: the number of pairs, then pairs `variable label`,
                                  both counted from 0
          --task <TASK>           What is asked [possible values: pr, mar, map]
          --method <METHOD>       How it is answered [default: auto] [possible values: auto, junction,
                                  tree, bp, trw, gibbs, brute]
          --max-table-mib <M>     Mebibytes that the tables of exact inference may take [default: 4096]
          --max-iter <N>          bp, trw: most iterations [default: 1000]
          --tolerance <T>         bp, trw: converged when no message changes by more than this [default:
                                  1e-8]
          --damping <D>           bp, trw: share of the old message in a new one, from 0 to below 1
                                  [default: 0.5]
          --sweeps <N>            gibbs: sweeps that are averaged, after a tenth as many of burn-in
                                  [default: 10000]
          --json                  Print one JSON object instead of text
      -o, --output <FILE>         Write the result to FILE, whole or not at all, instead of to standard
                                  output (`-`)
          --threads <N>           Threads; all cores by default. The result does not depend on it
          --seed <N>              Seed of everything random [default: 0]
          --quiet                 No warnings; errors are still told
      -v, --verbose               Say on standard error what was read, done and how long it took
      -h, --help                  Print help (see more with '--help')
      -V, --version               Print version

    Examples:
      gibbsite infer model.uai --task pr
      gibbsite infer model.uai --evidence model.uai.evid --task mar
      gibbsite infer model.uai.gz --task map --json
      gibbsite infer wide.uai --task pr --method trw        # an upper bound
    ");
}

#[test]
fn inspect() {
    assert_snapshot!(help(&["inspect", "--help"]), @r"
    Say what a file holds: for UAI models, their size and how inference on them would go

    Prints variables, factors, an upper bound on the treewidth, the memory that exact inference takes
    and the method that `infer` would choose, without running it.

    Usage: gibbsite inspect [OPTIONS] <FILE>

    Arguments:
      <FILE>
              The file, `-` for standard input

    Options:
          --evidence <FILE.evid>
              Evidence to condition on before looking

          --max-table-mib <M>
              Mebibytes that the tables of exact inference may take

              [default: 4096]

          --parameters
              All factors too, with their scopes and log-potentials (natural logarithms; a zero is -inf,
              null in JSON)

          --json
              Print one JSON object instead of text

      -o, --output <FILE>
              Write the result to FILE, whole or not at all, instead of to standard output (`-`)

          --threads <N>
              Threads; all cores by default. The result does not depend on it

          --seed <N>
              Seed of everything random

              [default: 0]

          --quiet
              No warnings; errors are still told

      -v, --verbose
              Say on standard error what was read, done and how long it took

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version
    ");
}

#[test]
fn version() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stdout(&["--version"]), format!("gibbsite {version}\n"));
    assert_eq!(stdout(&["infer", "-V"]), format!("gibbsite-infer {version}\n"));
}
