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
      regress  Fit a sparse regression (Lasso or logistic) to a certified duality gap
      predict  Predict with a model that `--model` wrote
      eval     Score a model on data with known targets
      analyze  Say in advance how an algorithm would do on some data
      inspect  Say what a file holds: a model that was trained here, or a UAI model and how inference on
               it would go
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
    Say what a file holds: a model that was trained here, or a UAI model and how inference on it would
    go

    For a model file (`--model`), what it was trained on and how well; for a UAI model, variables,
    factors, an upper bound on the treewidth, the memory that exact inference takes and the method that
    `infer` would choose, without running it.

    Usage: gibbsite inspect [OPTIONS] <FILE>

    Arguments:
      <FILE>
              The file, `-` for standard input

    Options:
          --evidence <FILE.evid>
              UAI: evidence to condition on before looking

          --max-table-mib <M>
              UAI: mebibytes that the tables of exact inference may take

              [default: 4096]

          --parameters
              All coefficients too; for UAI models all factors, with their scopes and log-potentials
              (natural logarithms; a zero is -inf, null in JSON)

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
fn regress() {
    assert_snapshot!(help(&["regress", "--help"]), @r"
    Fit a sparse regression (Lasso or logistic) to a certified duality gap

    Minimises `½‖Ax - y‖² + λ‖x‖₁` (lasso) or `Σ log(1 + exp(-y aᵀx)) + λ‖x‖₁` (logistic, with any two
    labels): sums over samples, raw columns, no intercept unless asked. The run ends when the duality
    gap, which bounds the distance from the optimum, is at most `--tolerance` times the objective at 0.

    Say how strong the penalty is in one of four ways: `--lambda`, `--lambda-ratio`, `--path` for a
    falling sequence, `--cv` to choose by cross-validation. Exit codes: 0 done; 1 the input is at fault;
    2 wrong usage; 3 stopped before the tolerance was met, also by Ctrl-C (the best model so far is
    written, and says so; Ctrl-C again quits at once).

    Usage: gibbsite regress [OPTIONS] <--lambda <L>|--lambda-ratio <R>|--path <N>|--cv <K>> <TASK> <DATA>

    Arguments:
      <TASK>
              What is fitted

              Possible values:
              - lasso:    A real-valued target, squared loss
              - logistic: Two classes, logistic loss

      <DATA>
              The data, `-` for standard input; `.gz` and `.zst` are read as they are

    Options:
          --format <FORMAT>
              How the data is written; by default csv if the file is called so, else svmlight

              Possible values:
              - svmlight: A sample a line: `target feature:value …`, features ascending
              - csv:      Comma-separated numbers under a header with the columns' names

          --zero-based
              svmlight: features are numbered from 0, not from 1

          --target <NAME>
              csv: the column that is to be predicted; by default the last

          --lambda <L>
              The penalty λ

          --lambda-ratio <R>
              λ as a share of λ_max, the least λ for which all coefficients are 0

          --path <N>
              Fit N penalties, geometric from λ_max down, each from the solution before; with --cv, how
              many are tried

          --cv <K>
              Choose λ from a path (of 100 unless --path says otherwise) by K-fold cross-validation, and
              fit it to all samples

          --path-ratio <R>
              The last λ of a path, as a share of λ_max

              [default: 0.01]

          --cv-rule <CV_RULE>
              Which λ cross-validation chooses

              Possible values:
              - min: The one with the least held-out loss
              - 1se: The largest whose held-out loss is within one standard error of the least

              [default: min]

          --solver <SOLVER>
              How it is solved

              Possible values:
              - auto:               Working sets with screening and acceleration: the fastest here
              - shotgun:            P random coordinates at a time, the same on any number of threads
              - shooting:           One random coordinate after the other
              - shotgun-async:      Shotgun without waiting for each other; the last digits depend on
                timing
              - sgd:                Stochastic gradient descent
              - truncated-gradient: Stochastic gradient descent with truncated gradients
              - parallel-sgd:       Averaged stochastic gradient descents on parts of the samples
              - hybrid:             Stochastic gradient descent first, Shotgun to finish
              - reference:          Accelerated proximal gradient: slow, simple, independent of the
                others

              [default: auto]

          --parallel <P>
              shotgun, shotgun-async: coordinates updated at a time; `auto` is the thesis' P* (for
              shotgun-async, the threads)

              [default: auto]

          --l2 <C2>
              Add `C2/2 · ‖x‖₂²` (elastic net)

              [default: 0]

          --intercept
              Fit an intercept, without penalty

          --standardize
              Penalise coefficients as if all columns had variance 1 (mean square 1 without
              --intercept); they are reported for the raw columns

          --weights <FILE>
              Penalty factors: a number a line for all features in order, or lines `feature,factor` (the
              others 1); 0 is no penalty

          --positive
              Coefficients of at least 0 only

          --tolerance <T>
              Done when the duality gap is at most T times the objective at 0

              [default: 1e-6]

          --max-epochs <N>
              Most passes over all coordinates (for sgd, over all samples), at each λ

              [default: 100000]

          --storage <STORAGE>
              How entries are stored

              Possible values:
              - f64: 8 bytes an entry
              - f32: 4 bytes an entry: less memory traffic; entries are rounded, sums are not

              [default: f64]

          --cache <FILE>
              Read the parsed data from FILE if it was made from DATA as it is now; otherwise write it
              there

          --model <OUT>
              Write the model to FILE, for `predict`, `eval` and `inspect`; of a path, the last

          --trace
              Add objective and gap over time to the JSON

          --plot <FILE.svg>
              Draw the gap over time, a path's coefficients against λ, or the cross-validated loss
              against λ

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
      gibbsite regress lasso data.svm --lambda-ratio 0.1
      gibbsite regress logistic news20.svm.gz --lambda-ratio 0.01 --model m.gib
      gibbsite regress lasso table.csv --target price --intercept --path 100 --plot path.svg
      gibbsite regress logistic data.svm --cv 5 --cv-rule 1se --model m.gib
      gibbsite regress lasso data.svm --lambda 2.5 --solver shotgun --parallel 8 --json
    ");
}

#[test]
fn predict() {
    assert_snapshot!(help(&["predict", "--help"]), @r"
    Predict with a model that `--model` wrote

    One prediction a line, in the order of the data: a number (lasso) or a label as in the training data
    (logistic). Targets in the data are not looked at. Columns of CSV data are found by their names, in
    any order; those that the model does not use may be there or not.

    Usage: gibbsite predict [OPTIONS] --model <M> <DATA>

    Arguments:
      <DATA>
              The data, `-` for standard input; `.gz` and `.zst` are read as they are

    Options:
          --model <M>
              The model

          --format <FORMAT>
              How the data is written; by default csv if the file is called so, else svmlight

              Possible values:
              - svmlight: A sample a line: `target feature:value …`, features ascending
              - csv:      Comma-separated numbers under a header with the columns' names

          --zero-based
              svmlight: features are numbered from 0, not from 1

          --target <NAME>
              csv: the column that is to be predicted; by default the last

          --marginals
              After each label, `label:probability` for all labels

              [alias: --probabilities]

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
      gibbsite predict --model m.gib new.svm
      gibbsite predict --model m.gib new.csv --probabilities
    ");
}

#[test]
fn eval() {
    assert_snapshot!(help(&["eval", "--help"]), @r"
    Score a model on data with known targets

    Lasso: R², mean squared and mean absolute error. Logistic: accuracy, area under the ROC curve, log
    loss (mean of -log p, natural logarithm), and precision, recall and F1 of each label.

    Usage: gibbsite eval [OPTIONS] --model <M> <DATA>

    Arguments:
      <DATA>
              The data, `-` for standard input; `.gz` and `.zst` are read as they are

    Options:
          --model <M>
              The model

          --format <FORMAT>
              How the data is written; by default csv if the file is called so, else svmlight

              Possible values:
              - svmlight: A sample a line: `target feature:value …`, features ascending
              - csv:      Comma-separated numbers under a header with the columns' names

          --zero-based
              svmlight: features are numbered from 0, not from 1

          --target <NAME>
              csv: the column that is to be predicted; by default the last

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
      gibbsite eval --model m.gib test.svm
      gibbsite eval --model m.gib test.csv --target price --json
    ");
}

#[test]
fn analyze() {
    assert_snapshot!(help(&["analyze", "--help"]), @r"
    Say in advance how an algorithm would do on some data

    Usage: gibbsite analyze <COMMAND>

    Commands:
      parallelism  How many coordinates Shotgun can update at a time, and what that gains
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version
    ");
}

#[test]
fn analyze_parallelism() {
    assert_snapshot!(help(&["analyze", "parallelism", "--help"]), @r"
    How many coordinates Shotgun can update at a time, and what that gains

    Prints ρ, the spectral radius of AᵀA with columns of norm 1, the thesis' P* = d/ρ (up to which
    rounds should fall as 1/P), d/(2ρ) (what the proof gives without duplicated features), and the
    predicted speed-up. With `--simulate` the synchronous algorithm is run at each P, and the rounds to
    come within 0.5 % of the optimum are counted (Thesis 4.3.2, Fig. 4.2).

    Usage: gibbsite analyze parallelism [OPTIONS] <DATA>

    Arguments:
      <DATA>
              The data, `-` for standard input; `.gz` and `.zst` are read as they are

    Options:
          --format <FORMAT>
              How the data is written; by default csv if the file is called so, else svmlight

              Possible values:
              - svmlight: A sample a line: `target feature:value …`, features ascending
              - csv:      Comma-separated numbers under a header with the columns' names

          --zero-based
              svmlight: features are numbered from 0, not from 1

          --target <NAME>
              csv: the column that is to be predicted; by default the last

          --task <TASK>
              --simulate: which regression

              Possible values:
              - lasso:    A real-valued target, squared loss
              - logistic: Two classes, logistic loss

              [default: lasso]

          --lambda <L>
              --simulate: the penalty λ

          --lambda-ratio <R>
              --simulate: λ as a share of λ_max; 0.1 by default

          --simulate <P1,P2,…>
              Run the algorithm at these P, or at `auto`: powers of 2 until beyond P*

          --runs <N>
              --simulate: runs that are averaged

              [default: 10]

          --plot <FILE.svg>
              Draw rounds or speed-up against P

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
      gibbsite analyze parallelism data.svm
      gibbsite analyze parallelism data.svm --simulate auto --plot speedup.svg
      gibbsite analyze parallelism data.svm --simulate 1,4,16,64 --runs 3 --json
    ");
}

#[test]
fn version() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stdout(&["--version"]), format!("gibbsite {version}\n"));
    assert_eq!(stdout(&["infer", "-V"]), format!("gibbsite-infer {version}\n"));
}
