/* Labels a sequence with a model that `gibbsite export --to c` wrote: whole, and as a stream. Prints `whole LABEL…` and `lag LABEL…`. */
#include <stdio.h>
#include <string.h>

#include "gibbsite.h"
#include "model.h"

/* Items of up to two attributes each, by name. */
static const char *const items[][2] = {
    {"U01:the", "U11:DT"}, {"U01:pump", "U11:NN"}, {"U01:will", "U11:MD"}, {"U01:stop", "U11:VB"}, {"U01:.", "U11:."},
};
enum { ITEMS = sizeof items / sizeof items[0], LAG = 2 };

static gibbsite_model model;
static gibbsite_decoder decoder;
static uint32_t scores[MODEL_SCORES];
static uint8_t back[MODEL_BACK];

static int label(const char *heading, int lag) {
    uint8_t labels[ITEMS], given = 0;
    size_t known = 0, rest = 0;
    if (gibbsite_start(&decoder, &model, lag, scores, MODEL_SCORES, back, MODEL_BACK) != GIBBSITE_STATUS_OK) return 1;
    for (size_t t = 0; t < ITEMS; t++) {
        gibbsite_feature_fixed features[2];
        size_t n = 0;
        bool due = false;
        for (size_t k = 0; k < 2; k++) {
            const char *name = items[t][k];
            /* Names that the model does not have are left out. */
            if (gibbsite_attribute(&model, (const uint8_t *)name, strlen(name), &features[n].attribute) == GIBBSITE_STATUS_OK)
                features[n++].value = 65536;
        }
        if (gibbsite_push_fixed(&decoder, features, n, &due, &given) != GIBBSITE_STATUS_OK) return 2;
        if (due) labels[known++] = given;
    }
    if (gibbsite_finish(&decoder, labels + known, ITEMS - known, &rest) != GIBBSITE_STATUS_OK) return 3;
    printf("%s", heading);
    for (size_t t = 0; t < known + rest; t++) {
        char name[32];
        if (gibbsite_label_name(&model, labels[t], (uint8_t *)name, sizeof name) != GIBBSITE_STATUS_OK) return 4;
        if (strcmp(name, model_labels[labels[t]]) != 0) return 5;
        printf(" %s", name);
    }
    printf("\n");
    return known + rest == ITEMS ? 0 : 6;
}

int main(void) {
    gibbsite_facts facts;
    uint32_t damaged[MODEL_WORDS];
    if (gibbsite_open(&model, model_words, MODEL_WORDS) != GIBBSITE_STATUS_OK) return 10;
    if (gibbsite_facts_of(&model, &facts) != GIBBSITE_STATUS_OK || facts.labels != MODEL_LABELS) return 11;
    /* What goes wrong has a name. */
    memcpy(damaged, model_words, sizeof damaged);
    damaged[MODEL_WORDS - 1] ^= 4;
    gibbsite_model other;
    if (gibbsite_open(&other, damaged, MODEL_WORDS) != GIBBSITE_STATUS_DAMAGED) return 12;
    if (gibbsite_open(&other, NULL, MODEL_WORDS) != GIBBSITE_STATUS_POINTER) return 13;
    if (gibbsite_start(&decoder, &model, -1, scores, 1, back, MODEL_BACK) != GIBBSITE_STATUS_MEMORY) return 14;
    if (gibbsite_push(&decoder, NULL, 0, NULL, NULL) != GIBBSITE_STATUS_POINTER) return 15;
    int wrong = label("whole", -1);
    return wrong ? wrong : label("lag  ", LAG);
}
