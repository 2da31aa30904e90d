//! Plans the grid's junction tree on the desk, so that the device has it in flash.
use gibbsite::data::network::Network;
use gibbsite::plan::{PlanParams, plan};
use std::{env, error::Error, fs, path::PathBuf};

#[allow(dead_code)]
#[path = "src/grid.rs"]
mod grid;

fn main() -> Result<(), Box<dyn Error>> {
    let mut network = Network::with_cards(grid::CARDS)?;
    for ends in grid::SCOPE_START.windows(2) {
        let scope = &grid::SCOPE[ends[0] as usize..ends[1] as usize];
        let size = scope.iter().map(|&v| grid::CARDS[v as usize] as usize).product();
        network.push_factor(scope, vec![0.0; size])?;
    }
    // A small block, so that the loops around it have something to do.
    let params = PlanParams { block: 8, ..PlanParams::default() };
    let words = plan(&network, &params)?.words;
    let out = PathBuf::from(env::var("OUT_DIR")?).join("grid_plan.rs");
    fs::write(out, format!("&{words:?}"))?;
    println!("cargo:rerun-if-changed=src/grid.rs");
    println!("cargo:rerun-if-changed=build.rs");
    Ok(())
}
