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
      infer     Answer a query on a factor graph in UAI format: partition function, marginals, best
                assignment
      train     Train a conditional random field
      import    Take over a model that CRFsuite or CRF++ trained
      regress   Fit a sparse regression (Lasso or logistic) to a certified duality gap
      gaussian  Learn sparse Gaussian CRFs: many correlated real outputs, with honest intervals
      predict   Predict with a model that `--model` wrote
      eval      Score a model on data with known targets
      sample    Draw labels from a model
      analyze   Say in advance how an algorithm would do on some data
      export    Write a model as firmware can use it
      inspect   Say what a file holds: a model that was trained here, or a UAI model and how inference
                on it would go
      help      Print this message or the help of the given subcommand(s)

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
              How the data is written; by default as the model's training data, or csv if the file is
              called so, else svmlight

              Possible values:
              - svmlight: A sample a line: `target feature:value …`, features ascending
              - csv:      Comma-separated numbers under a header with the columns' names
              - crfsuite: Sequences: an item a line, `LABEL<TAB>attribute[:value]<TAB>…`, blank lines
                between sequences
              - columns:  Sequences: columns separated by spaces or tabs, the label last, blank lines
                between sequences
              - table:    Fields: CSV with a header, a row an example

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
              fit it to all samples. After Ctrl-C the choice is among what was tried: by the folds that
              are done, or by those that got below λ_max; with fewer than two, no model is written

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
              others 1); 0 is no penalty. The ridge of --l2 ignores them

          --positive
              Coefficients of at least 0 only

          --tolerance <T>
              Done when the duality gap is at most T times the objective at 0

              [default: 1e-6]

          --max-epochs <N>
              Most passes at each λ: over all coordinates, 100000 by default; for sgd,
              truncated-gradient and parallel-sgd over all samples, 20 by default

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
    (logistic, sequences; a blank line between sequences), or a row of CSV with the outputs (tables;
    with --marginals also columns `output:label`). Targets in the data are not looked at, unless
    --forced. Columns of CSV data are found by their names, in any order; those that the model does not
    use may be there or not.

    Usage: gibbsite predict [OPTIONS] --model <M> <DATA>

    Arguments:
      <DATA>
              The data, `-` for standard input; `.gz` and `.zst` are read as they are

    Options:
          --model <M>
              The model

          --format <FORMAT>
              How the data is written; by default as the model's training data, or csv if the file is
              called so, else svmlight

              Possible values:
              - svmlight: A sample a line: `target feature:value …`, features ascending
              - csv:      Comma-separated numbers under a header with the columns' names
              - crfsuite: Sequences: an item a line, `LABEL<TAB>attribute[:value]<TAB>…`, blank lines
                between sequences
              - columns:  Sequences: columns separated by spaces or tabs, the label last, blank lines
                between sequences
              - table:    Fields: CSV with a header, a row an example

          --zero-based
              svmlight: features are numbered from 0, not from 1

          --target <NAME>
              csv: the column that is to be predicted; by default the last

          --marginals
              After each label, `label:probability` for all labels

              [alias: --probabilities]

          --best <K>
              Sequences: the K best labellings of each, every one after a line `# rank probability`

          --scheme <SCHEME>
              Sequences: only labellings that are valid in this scheme

              Possible values:
              - bio:   `B-X` begins a chunk, `I-X` continues one, `O` is outside
              - iobes: As bio, `E-X` ends a chunk, `S-X` is one of a single item

          --forbid <FILE>
              Sequences: transitions that are not allowed, a line `label<TAB>label` each

          --forced
              Sequences and tables: keep the labels that are known in the data (`?` is not known; in
              sequences `{A|B}` is one of those)

          --unlabelled
              Sequences: the data has no labels; by default a column too few tells

          --max-table-mib <M>
              Tables: mebibytes that exact inference may take, for each thread; beyond, belief
              propagation estimates

              [default: 1024]

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
      gibbsite predict --model chunk.gib --format columns new.txt --scheme bio
      gibbsite predict --model chunk.gib --format columns new.txt --best 5
      gibbsite predict --model weather.gib --format table new.csv --forced --marginals
    ");
}

#[test]
fn eval() {
    assert_snapshot!(help(&["eval", "--help"]), @r"
    Score a model on data with known targets

    Lasso: R², mean squared and mean absolute error. Logistic: accuracy, area under the ROC curve, log
    loss (mean of -log p, natural logarithm), and precision, recall and F1 of each label. Sequences:
    accuracy of items and of whole sequences, log loss (mean over sequences), precision, recall and F1
    of each label, and of chunks if labels are BIO or IOBES (conlleval's definition). Tables: accuracy
    of cells and of whole rows, log loss (mean over rows), precision, recall and F1 of each label.
    Gaussian CRFs: mean squared error, log loss (mean over rows), CRPS, and the share of outputs within
    their intervals. Items per second count reading and labelling.

    Usage: gibbsite eval [OPTIONS] --model <M> <DATA>

    Arguments:
      <DATA>
              The data, `-` for standard input; `.gz` and `.zst` are read as they are

    Options:
          --model <M>
              The model

          --format <FORMAT>
              How the data is written; by default as the model's training data, or csv if the file is
              called so, else svmlight

              Possible values:
              - svmlight: A sample a line: `target feature:value …`, features ascending
              - csv:      Comma-separated numbers under a header with the columns' names
              - crfsuite: Sequences: an item a line, `LABEL<TAB>attribute[:value]<TAB>…`, blank lines
                between sequences
              - columns:  Sequences: columns separated by spaces or tabs, the label last, blank lines
                between sequences
              - table:    Fields: CSV with a header, a row an example

          --zero-based
              svmlight: features are numbered from 0, not from 1

          --target <NAME>
              csv: the column that is to be predicted; by default the last

          --scheme <SCHEME>
              Sequences: only labellings that are valid in this scheme

              Possible values:
              - bio:   `B-X` begins a chunk, `I-X` continues one, `O` is outside
              - iobes: As bio, `E-X` ends a chunk, `S-X` is one of a single item

          --max-table-mib <M>
              Tables: mebibytes that exact inference may take, for each thread; beyond, belief
              propagation estimates

              [default: 1024]

          --y <Y>
              Gaussian CRFs: the outputs, if the data holds the inputs only; rows may lack some

          --interval <P>
              Gaussian CRFs: the probability of the intervals whose coverage is counted; 0.9 unless said

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
      gibbsite eval --model chunk.gib --format columns test.txt
      gibbsite eval --model weather.gib --format table test.csv --json
      gibbsite eval --model wind.gib test.npy --y test-y.npy
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
    come within 0.5 % of the optimum are counted (Thesis 4.3.2, Fig. 4.2), with their standard error
    over the runs; each run draws the same coordinates at every P.

    Usage: gibbsite analyze parallelism [OPTIONS] <DATA>

    Arguments:
      <DATA>
              The data, `-` for standard input; `.gz` and `.zst` are read as they are

    Options:
          --format <FORMAT>
              How the data is written; by default as the model's training data, or csv if the file is
              called so, else svmlight

              Possible values:
              - svmlight: A sample a line: `target feature:value …`, features ascending
              - csv:      Comma-separated numbers under a header with the columns' names
              - crfsuite: Sequences: an item a line, `LABEL<TAB>attribute[:value]<TAB>…`, blank lines
                between sequences
              - columns:  Sequences: columns separated by spaces or tabs, the label last, blank lines
                between sequences
              - table:    Fields: CSV with a header, a row an example

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

#[test]
fn train() {
    assert_snapshot!(help(&["train", "--help"]), @r"
    Train a conditional random field

    Minimises `-Σ log p(y|x) + C1·‖θ‖₁ + C2/2·‖θ‖₂²`, sums over sequences or rows. (CRFsuite's c1 is C1;
    its c2 is C2/2, so `--l2 2` here is `c2=1` there.) The run ends when the subdifferential violation,
    which is 0 at the optimum and nowhere else, is at most `--tolerance` times its value at θ = 0.

    A label `?` in the data is not known; in sequences, `{A|B}` is one of those.

    Tables (`--format table`): CSV with a header, a row an example. Outputs are discrete and are joined
    by the edges of --structure; a label that is empty or `?` is not known. Inputs are numbers, or
    discrete if some cell of the column is none. Each output sees a constant and all inputs, or those of
    --input-map; edges see the constant.

    Exit codes: 0 done; 1 the input is at fault; 2 wrong usage; 3 stopped before the tolerance was met,
    also by Ctrl-C (the best model so far is written, and says so; Ctrl-C again quits at once).

    Usage: gibbsite train [OPTIONS] --format <FORMAT> --model <OUT> <DATA>

    Arguments:
      <DATA>
              The data, `-` for standard input; `.gz` and `.zst` are read as they are

    Options:
          --format <FORMAT>
              How the data is written

              Possible values:
              - crfsuite: An item a line, `LABEL<TAB>attribute[:value]<TAB>…`, blank lines between
                sequences
              - columns:  Columns separated by spaces or tabs, the label last, blank lines between
                sequences; needs --template
              - table:    CSV with a header, a row an example; needs --outputs and --structure

          --model <OUT>
              Write the model to FILE, for `predict`, `eval` and `inspect`

          --template <FILE>
              columns: what attributes to make of the columns, in the notation of CRF++ and Wapiti

          --outputs <NAMES>
              table: columns to be predicted, comma separated; `y*` is all that begin with `y`

          --inputs <NAMES>
              table: columns to predict from, likewise; `*` is all others. Without it the field has no
              inputs

          --structure <STRUCTURE>
              table: which outputs are joined: chain, star, full, independent, grid:ROWSxCOLUMNS, or
              file:EDGES.csv with two outputs a line

          --input-map <FILE>
              table: a CSV `output,input` that says which outputs see which inputs; those that are not
              in it see none

          --share
              table: one alphabet and one set of weights for all outputs, and one for all edges. The
              k-th inputs of all outputs share their weights

          --standardize
              table: take numbers as (x - mean) / deviation, both of the training data

          --components <COMPONENTS>
              With --estimator composite: auto (mle if exact inference is cheap, as it is for sequences,
              else combs on grids, else pseudo), mle, pseudo, pairs, k:K (blocks of K) or tree, each
              given the labels around it. Tables also: combs, combs-horizontal, combs-both, tree:N, or
              file:FILE, a component a line, `[WEIGHT *] A [| B]`, outputs by their numbers from 0

          --optimize <OPTIMIZE>
              table: all parameters together, or each component by itself, with averages where they
              overlap

              Possible values:
              - joint:    One problem
              - disjoint: A problem for each component, solved in parallel; weights that several have
                are averaged

              [default: joint]

          --start <START>
              Where to begin

              Possible values:
              - zero:   All weights 0
              - pseudo: A rough optimum of the pseudolikelihood

              [default: zero]

          --inference <INFERENCE>
              table: what to do with components that are too wide for exact inference, such as all of a
              large grid with --estimator mle. Exit code 3 if belief propagation does not come to rest

              Possible values:
              - exact: Refuse them
              - bp:    Loopy belief propagation: Bethe's estimate of the objective
              - gibbs: Gibbs sampling: estimates of the gradient, averaged over 200 steps; without --l1

              [default: exact]

          --sweeps <N>
              table: with --inference gibbs, sweeps over all outputs of a row in each step

              [default: 20]

          --max-table-mib <M>
              table: mebibytes that the tables of exact inference may take, for each thread

              [default: 1024]

          --estimator <ESTIMATOR>
              What is maximised

              Possible values:
              - mle:       The likelihood
              - pseudo:    The pseudolikelihood: each output given all others
              - piecewise: Each factor by itself: fast, not consistent
              - composite: The composite likelihood of --components

              [default: mle]

          --l1 <C1>
              Penalty C1 on the sum of all |θ|: most weights become 0. With --cv a list to choose from,
              comma separated

              [default: 0]

          --l2 <C2>
              Penalty C2 on half the sum of all θ²; 1 if neither this nor --l1 is given. With --cv a
              list, as for --l1

          --cv <K>
              Choose the penalties by K-fold cross-validation, then train on all data. Tries all pairs
              of --l1 and --l2, from the strongest to the weakest; if neither is given, --l2
              10,3,1,0.3,0.1,0.03,0.01. The least mean log loss of sequences or rows that were held out
              is chosen

          --plot <FILE.svg>
              Draw the held-out log loss against the penalties to FILE.svg; with --cv

          --solver <SOLVER>
              How it is solved; `auto` is lbfgs, or owlqn with --l1

              Possible values:
              - auto:    The fastest that fits the penalties
              - lbfgs:   Limited-memory BFGS; without --l1
              - owlqn:   Limited-memory BFGS for L1 penalties
              - shotgun: table, with --estimator pseudo: parallel coordinate descent, for sparse models
              - sgd:     sequences: averaged stochastic gradient descent, for --l2 above 0 without --l1.
                An iteration is a pass over all sequences. Soon near the optimum, but rarely within the
                default tolerance: a run that gains next to nothing any more ends with exit code 3

              [default: auto]

          --tolerance <T>
              Done when the violation is at most T times its value at θ = 0; 1e-5 by default, 1e-8 with
              --target-objective, which is then what ends the run

          --target-objective <V>
              Done as soon as the objective is at most V

          --max-iter <N>
              Most iterations

              [default: 10000]

          --min-count <N>
              Leave out attributes that occur fewer than N times

              [default: 1]

          --all-states
              A weight for every attribute with every label, not only for those seen together
              (CRFsuite's feature.possible_states)

          --all-transitions
              A weight for every transition, not only for those seen (CRFsuite's
              feature.possible_transitions)

          --stream
              sequences: for data larger than memory. Sequences go to a temporary file next to the
              model, which is read again in every pass; the model is the same

          --holdout <FILE>
              Tell the accuracy on FILE after each iteration

          --checkpoint <FILE>
              Save the state of the run to FILE every minute, and at its end

          --resume
              Go on from the checkpoint, if there is one

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
      gibbsite train --format crfsuite train.txt --model m.gib
      gibbsite train --format columns --template chunk.tpl train.txt --model chunk.gib --holdout
      test.txt
      gibbsite train --format crfsuite train.txt.gz --l1 1 --l2 0.1 --model small.gib --json
      gibbsite train --format crfsuite train.txt --cv 5 --l2 0.1,1,10 --plot cv.svg --model m.gib
      gibbsite train --format crfsuite huge.txt --stream --model m.gib --checkpoint m.ckpt --resume
      gibbsite train --format table weather.csv --outputs sky,wind,rain,umbrella --inputs '*'
      --structure chain --model w.gib
      gibbsite train --format table images.csv --outputs 'p*' --structure grid:20x20 --share --estimator
      composite --components combs --model i.gib
    ");
}

#[test]
fn import() {
    assert_snapshot!(help(&["import", "--help"]), @r"
    Take over a model that CRFsuite or CRF++ trained

    Reads CRFsuite's binary model files and CRF++'s text models (`crf_learn -t` writes one beside the
    binary); which of them FILE is, its first bytes tell. Scores are the same as there; weights of 0 are
    left out.

    Usage: gibbsite import [OPTIONS] --model <OUT> <FILE>

    Arguments:
      <FILE>
              The model of the other program, `-` for standard input

    Options:
          --model <OUT>
              Write the model to FILE, for `predict`, `eval` and `inspect`

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
      gibbsite import chunk.crfsuite --model chunk.gib
      gibbsite import model.txt --model chunk.gib && gibbsite predict --model chunk.gib --format columns
      new.txt
    ");
}

#[test]
fn export() {
    assert_snapshot!(help(&["export", "--help"]), @r"
    Write a model as firmware can use it

    Writes the image of a chain over sequences or of a field over the columns of a table: words that
    `gibbsite_core::image::Image::open` (or `gibbsite_open` in C; `FieldImage::open` for a field) reads
    from flash without copying them, as a binary file or as source text. Prints the bytes of flash
    (without code), the bytes of memory for sequences of --max-length, and with --check how the image
    does on data against the model in double precision: labels that differ, the worst error of a score
    (with its proven bound, for fixed point) and of a probability.

    Gaussian CRFs (`gaussian fit`) are written in f32: the sparse factor of Λ, Λ and Θ; --check takes
    inputs and prints the worst error of a mean, in standard deviations, and of a deviation.

    A field goes with a junction tree if that takes up to 64 KiB of memory; --check takes a table, and
    compares its exact inference if it has one. In f32 firmware gives inputs as they are; in fixed point
    it gives inputs that were standardised as (x - mean) / scale, in numbers that are printed and stand
    beside the attributes in source text.

    Weights of 0 and attributes without weights are left out. Fixed point (i16, i8) needs additions and
    comparisons only, for cores without floating point.

    Usage: gibbsite export [OPTIONS] --model <M> --to <FORM> <OUT>

    Arguments:
      <OUT>
              The file to write

    Options:
          --model <M>
              The model

          --to <FORM>
              What to write: a binary image (little-endian), C or Rust source

              Possible values:
              - image: The words, little-endian
              - c:     A header with the words as a constant, sizes of memory, labels and numbers of
                attributes
              - rust:  The same for Rust, to `include!` or as a module

          --scalar <SCALAR>
              What the weights become

              Possible values:
              - f32: Single precision
              - i16: Fixed point, weights in 16 bits
              - i8:  Fixed point, weights in 8 bits

              [default: f32]

          --max-length <T>
              The longest sequence, for which memory is planned

              [default: 100]

          --attributes <ATTRIBUTES>
              How firmware names attributes

              Possible values:
              - hash:    By name, through 32-bit hashes: an unknown name is taken for one of n known
                ones with probability n/2³²
              - exact:   By name, and the names are stored
              - numbers: By number only: the smallest image

              [default: hash]

          --scheme <SCHEME>
              Sequences: only labellings that are valid in this scheme

              Possible values:
              - bio:   `B-X` begins a chunk, `I-X` continues one, `O` is outside
              - iobes: As bio, `E-X` ends a chunk, `S-X` is one of a single item

          --forbid <FILE>
              Sequences: transitions that are not allowed, a line `label<TAB>label` each

          --check <DATA>
              Compare with the model in double precision on this data

          --format <FORMAT>
              How the data of --check is written; as the model's training data by default

              Possible values:
              - svmlight: A sample a line: `target feature:value …`, features ascending
              - csv:      Comma-separated numbers under a header with the columns' names
              - crfsuite: Sequences: an item a line, `LABEL<TAB>attribute[:value]<TAB>…`, blank lines
                between sequences
              - columns:  Sequences: columns separated by spaces or tabs, the label last, blank lines
                between sequences
              - table:    Fields: CSV with a header, a row an example

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
      gibbsite export --model gestures.gib --to rust --scalar i16 model.rs
      gibbsite export --model gestures.gib --to c --max-length 50 --check test.txt model.h
      gibbsite export --model wind.gib --to c --check features.npy wind.h
      gibbsite export --model chunk.gib --to image --attributes exact chunk.img && gibbsite inspect
      chunk.img
    ");
}

#[test]
fn gaussian() {
    assert_snapshot!(help(&["gaussian", "--help"]), @r"
    Learn sparse Gaussian CRFs: many correlated real outputs, with honest intervals

    Usage: gibbsite gaussian <COMMAND>

    Commands:
      fit      Fit a sparse Gaussian CRF to inputs and real outputs
      predict  Predict the outputs of new rows, with intervals
      help     Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version
    ");
}

#[test]
fn gaussian_fit() {
    assert_snapshot!(help(&["gaussian", "fit", "--help"]), @r"
    Fit a sparse Gaussian CRF to inputs and real outputs

    The outputs are modelled as y | x ~ N(-Λ⁻¹Θᵀx, Λ⁻¹). Minimises `-log|Λ| + tr(S_yy Λ) + 2 tr(S_xyᵀ Θ)
    + tr(Λ⁻¹ Θᵀ S_xx Θ) + λ(‖Λ‖ + ‖Θ‖)` with sums of absolute values, those of Λ off the diagonal, raw
    columns, no intercept unless asked. The run ends when the subdifferential violation (the largest
    entry of the subgradient nearest to 0) is at most `--tolerance` times λ.

    X and Y are CSV (with or without a header) or `.npy` files of one row an example. Say how strong the
    penalty is in one of four ways: `--lambda`, `--lambda-ratio`, `--path` for a falling sequence,
    `--cv` to choose by cross-validation. Exit codes: 0 done; 1 the input is at fault; 2 wrong usage; 3
    stopped before the tolerance was met, also by Ctrl-C (the best model so far is written, and says
    so).

    Usage: gibbsite gaussian fit [OPTIONS] --x <X> --y <Y> <--lambda <L>|--lambda-ratio <R>|--path <N>|--cv <K>>

    Options:
          --x <X>
              Inputs, one row an example

          --y <Y>
              Outputs, one row an example

          --lambda <L>
              The penalty λ, of Λ and (unless --lambda-theta) of Θ

          --lambda-ratio <R>
              λ as a share of λ_max, the least λ for which nothing but the diagonal of Λ is left

          --path <N>
              Fit N penalties, geometric from λ_max down, each from the solution before; with --cv, how
              many are tried

          --cv <K>
              Choose λ from a path (of 20 unless --path says otherwise) by K-fold cross-validation, and
              fit it to all rows

          --path-ratio <R>
              The last λ of a path, as a share of λ_max

              [default: 0.01]

          --cv-loss <CV_LOSS>
              The held-out loss that --cv compares

              Possible values:
              - log-loss: The mean of -log p(y | x)
              - mse:      The mean squared error

              [default: log-loss]

          --cv-contiguous
              --cv with folds of rows that follow each other, as time series want it, instead of
              shuffled ones

          --lambda-theta <L>
              The penalty of Θ, if it is another one; it stays the same along a path

          --theta-factor <F>
              The penalty of Θ as a multiple of that of Λ

          --penalize-diagonal
              Penalise the diagonal of Λ too

          --intercept
              Fit an intercept, without penalty

          --standardize
              Penalise as if all columns of X and Y had variance 1 (mean square 1 without --intercept);
              parameters are for the raw columns

          --refit
              Fit the entries that are not 0 again, without penalty: estimates are no longer shrunk. The
              objective is then that without penalty

          --weights <FILE>
              Weights of the samples: a file with one column, a number of at least 0 a row

          --solver <SOLVER>
              How it is solved

              Possible values:
              - auto:        Alternating Newton, finished by conjugate gradients on the entries that are
                not 0: the fastest here
              - newton-cd:   Newton coordinate descent on Λ and Θ together (SGCRF Algorithm 1)
              - alternating: Newton coordinate descent on Λ, coordinate descent on Θ, in turn
              - fista:       Accelerated proximal gradient: slow, simple, independent of the others
              - owlqn:       Orthant-wise L-BFGS: the paper's other baseline

              [default: auto]

          --tolerance <T>
              Done when the subdifferential violation is at most T times λ (the larger one, if there are
              two)

              [default: 1e-6]

          --max-iter <N>
              Most outer iterations, at each λ; 1000 unless said, 100000 for fista and owlqn

          --memory <SIZE>
              Memory that the fit may take beside X and Y themselves, for instance `2GiB` or `100MiB`;
              without it there is no limit. Where that is too little for dense matrices (in bytes about
              23·m·n + 80·m·p + 114·p² + 35·n·p for m rows, n inputs and p outputs; 4000 inputs, 1000
              outputs, 2500 rows: 652 MiB) the fit is done by blocks of columns, which keeps only what
              is not 0 and is as exact, but slower. It needs about 150 bytes for each entry that is not
              0, 44 for each of the sparse factor of Λ, and a copy of X and Y with --intercept,
              --standardize or --weights (each fold of --cv has one, too). Too little even for that is
              an error that says how much is needed. Not for fista and owlqn; newton-cd and alternating
              do not work by blocks

          --model <OUT>
              Write the model to FILE, for `gaussian predict` and `inspect`; of a path, the last

          --trace
              Add objective and violation over time to the JSON

          --plot <FILE.svg>
              Draw which entries of Λ and Θ are not 0

          --plot-course <FILE.svg>
              Draw the violation over time, a path's non-zeros against λ, or the cross-validated loss
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
      gibbsite gaussian fit --x features.npy --y loads.npy --lambda 0.1 --model wind.gib
      gibbsite gaussian fit --x x.csv --y y.csv --intercept --standardize --cv 5 --model wind.gib --plot
      pattern.svg
      gibbsite gaussian fit --x x.npy --y y.npy --path 20 --json
    ");
}

#[test]
fn gaussian_predict() {
    assert_snapshot!(help(&["gaussian", "predict", "--help"]), @r"
    Predict the outputs of new rows, with intervals

    Prints CSV: the mean of each output; with --interval also columns `name:low` and `name:high`; with
    --samples instead N joint draws for each row, after columns `row` and `sample`. With --y the
    predictions are scored: mean squared error, log loss (mean over rows of -log p(y | x) of the whole
    row), CRPS, coverage of the intervals (of 0.9 unless --interval says otherwise). Rows of Y may lack
    cells (empty, NaN): those are predicted given the ones that are there.

    Usage: gibbsite gaussian predict [OPTIONS] --model <M> --x <X>

    Options:
          --model <M>
              The model

          --x <X>
              Inputs, one row an example

          --y <Y>
              Outputs as far as they are known: to score, and to condition on where a row lacks some

          --interval <P>
              Intervals that hold with this probability, from 0 to 1

          --joint
              Make the intervals wider, so that all outputs of a row are within theirs together

          --samples <N>
              Draw N joint samples for each row

          --plot <FILE.svg>
              Draw means and intervals of the first rows: a forecast fan

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
      gibbsite gaussian predict --model wind.gib --x new.npy --interval 0.9
      gibbsite gaussian predict --model wind.gib --x new.csv --y so-far.csv
      gibbsite gaussian predict --model wind.gib --x test.npy --y test-y.npy --json
    ");
}
