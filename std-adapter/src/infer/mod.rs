//! (being written)
mod junction;
mod parts;

/// temp
pub fn bench(network: &crate::data::network::Network, par: crate::par::Par) {
    let t = std::time::Instant::now();
    par.run(|par| {
        let parts = parts::split(network);
        let forest = junction::prepare(&parts, &Default::default(), par).unwrap();
        let t1 = t.elapsed();
        let z = forest.log_z(&parts, par);
        let t2 = t.elapsed();
        let (z2, _m) = forest.marginals(&parts, par).unwrap();
        let t3 = t.elapsed();
        let i = forest.info;
        println!("plan {:.1} ms, up {:.1} ms, mar {:.1} ms | width {} largest 2^{:.1} cost 2^{:.1} mem {:.1} MiB/{:.1} | log10 Z {} {}",
            t1.as_secs_f64()*1e3, (t2-t1).as_secs_f64()*1e3, (t3-t2).as_secs_f64()*1e3, i.treewidth, i.largest_table.log2(), i.cost.log2(), i.mebibytes(false), i.mebibytes(true), z.unwrap()/10f64.ln(), z2/10f64.ln());
    })
}
