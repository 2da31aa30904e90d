/* Firmware that learns: it labels a sequence with a model in flash, is told that every third label is the next one instead, learns from
 * that, saves what it has learned, goes on from there, and labels the sequence again; weights and labels go through semihosting. `model.h` is what
 * `gibbsite export --to c` wrote, `items.h` what a sensor would deliver; built as firmware.c says. */
#include "board.h"
#include "gibbsite.h"
#include "items.h" /* ITEMS, features, starts */
#include "model.h"

/* Every attribute has a slot of its own number; a product would give slots to a few. */
enum { SLOTS = MODEL_ATTRIBUTES, WEIGHTS = MODEL_LABELS * (1 + SLOTS) };

static gibbsite_model model;
static gibbsite_decoder decoder;
static gibbsite_overlay overlay;
static float weights[WEIGHTS], memory[2 * MODEL_LABELS], log_probability;
static uint32_t scores[MODEL_SCORES];
static uint8_t back[MODEL_BACK], labels[ITEMS];

static gibbsite_item item(size_t t) {
    const gibbsite_feature *all = features + starts[t];
    const size_t count = starts[t + 1] - starts[t];
    /* The slots have the attributes' numbers, so that both lists are the same. */
    const gibbsite_item found = {all, count, all, count, t > 0 ? labels[t - 1] : -1, t + 1 < ITEMS ? labels[t + 1] : -1};
    return found;
}

static int label(void) {
    uint8_t given = 0;
    size_t count = 0;
    if (gibbsite_start(&decoder, &model, -1, scores, MODEL_SCORES, back, MODEL_BACK) != GIBBSITE_STATUS_OK) return 10;
    for (size_t t = 0; t < ITEMS; t++) {
        const gibbsite_item next = item(t);
        bool due = false;
        if (gibbsite_overlay_push(&overlay, &decoder, &next, &due, &given) != GIBBSITE_STATUS_OK) return 11;
    }
    if (gibbsite_finish(&decoder, labels, ITEMS, &count) != GIBBSITE_STATUS_OK) return 12;
    return count == ITEMS ? 0 : 13;
}

/* One step for each item. */
static int learn(void) {
    const gibbsite_online_params params = {.rate = 0.5f, .decay = 0.015625f, .l2 = 0.0009765625f, .l1 = 0.0009765625f};
    for (size_t t = 0; t < ITEMS; t++) {
        const gibbsite_item next = item(t);
        if (gibbsite_overlay_learn(&overlay, &next, labels[t], &params, &log_probability, memory, 2 * MODEL_LABELS) != GIBBSITE_STATUS_OK)
            return 20;
    }
    return 0;
}

/* What goes wrong has a name, and teaches nothing. */
static int refuse(void) {
    const gibbsite_online_params params = {.rate = 0.5f}, backwards = {.rate = -0.5f};
    const gibbsite_feature unknown = {SLOTS, 1.0f};
    gibbsite_item bad = item(0);
    gibbsite_overlay other = {{0}};
    if (gibbsite_overlay_open(&other, &model, SLOTS, weights, WEIGHTS - 1, 0) != GIBBSITE_STATUS_MEMORY) return 30;
    if (gibbsite_overlay_score(&other, &bad, memory) != GIBBSITE_STATUS_POINTER) return 31;
    if (gibbsite_overlay_learn(&overlay, &bad, MODEL_LABELS, &params, 0, memory, 2 * MODEL_LABELS) != GIBBSITE_STATUS_UNKNOWN) return 32;
    if (gibbsite_overlay_learn(&overlay, &bad, 0, &params, 0, memory, 2 * MODEL_LABELS - 1) != GIBBSITE_STATUS_MEMORY) return 33;
    if (gibbsite_overlay_learn(&overlay, &bad, 0, &backwards, 0, memory, 2 * MODEL_LABELS) != GIBBSITE_STATUS_BAD_VALUE) return 34;
    bad.learned = &unknown;
    bad.learned_count = 1;
    if (gibbsite_overlay_learn(&overlay, &bad, 0, &params, 0, memory, 2 * MODEL_LABELS) != GIBBSITE_STATUS_UNKNOWN) return 35;
    for (size_t i = 0; i < WEIGHTS; i++)
        if (weights[i] != 0.0f) return 36;
    return 0;
}

int main(void) {
    gibbsite_facts facts;
    if (gibbsite_open(&model, model_words, MODEL_WORDS) != GIBBSITE_STATUS_OK) return 1;
    if (gibbsite_facts_of(&model, &facts) != GIBBSITE_STATUS_OK || facts.attributes != SLOTS) return 2;
    if (gibbsite_overlay_open(&overlay, &model, SLOTS, weights, WEIGHTS, 0) != GIBBSITE_STATUS_OK) return 3;
    int wrong = refuse();
    if (wrong || (wrong = label())) return wrong;
    for (size_t t = 0; t < ITEMS; t += 3) labels[t] = (uint8_t)((labels[t] + 1u) % MODEL_LABELS);
    if ((wrong = learn())) return wrong;
    /* Saved, lost, loaded. */
    static float saved[WEIGHTS];
    const float *learned = 0;
    size_t count = 0;
    uint32_t steps = 0;
    if (gibbsite_overlay_weights(&overlay, &learned, &count, &steps) != GIBBSITE_STATUS_OK || count != WEIGHTS || steps != ITEMS) return 4;
    for (size_t i = 0; i < WEIGHTS; i++) saved[i] = learned[i];
    for (size_t i = 0; i < WEIGHTS; i++) weights[i] = saved[WEIGHTS - 1 - i];
    if (gibbsite_overlay_open(&overlay, &model, SLOTS, saved, WEIGHTS, steps) != GIBBSITE_STATUS_OK) return 5;
    if ((wrong = learn())) return wrong;
    if ((wrong = label())) return wrong;
    print_floats("weights", saved, WEIGHTS);
    print_floats(0, &log_probability, 1);
    print("\nlabels");
    for (size_t t = 0; t < ITEMS; t++) print_hex(labels[t], 2);
    print("\n");
    return 0;
}
