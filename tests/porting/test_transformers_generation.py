"""The decoders of transformers, each with its own cache, write as a port what they write themselves."""

from __future__ import annotations

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from test_generation import TOKENS, arrays, check_same, ported, written

from multiop import errors, porting
from multiop.porting import _objects

pytestmark = pytest.mark.tier("full")
WORDS, LENGTH, SOURCE = 50, 80, 7
SIZES = {"vocab_size": WORDS, "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
FEATURES = {"d_model": 32, "decoder_start_token_id": 1}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}
LLAMA = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
T5 = {"d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
WHISPER = {
    f"{half}_{what}": n for half in ("encoder", "decoder") for what, n in (("layers", 2), ("attention_heads", 4))
}
WHISPER |= {"num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 128}
MODELS = {  # its class, its configuration, and how many digits it computes with: some norms are in float32
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", GPT2, 1e-12),
    "Llama": ("LlamaForCausalLM", "LlamaConfig", {**LLAMA, "intermediate_size": 64}, 1e-5),
    "Mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        {"hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, "tie_word_embeddings": False},
        1e-5,
    ),
    "T5": ("T5ForConditionalGeneration", "T5Config", T5 | FEATURES, 1e-5),
    "Whisper": ("WhisperForConditionalGeneration", "WhisperConfig", WHISPER | FEATURES, 1e-12),
}
CASES = [(name, kind) for name in MODELS for kind in ("static", "growing") if (name, kind) != ("Mamba", "static")]


@functools.cache
def made(name):
    """Return a model with random weights, whose next word is clear."""
    kind, config, options, _ = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**SIZES, **options)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4 if parameter.ndim > 1 and name != "Mamba" else 1)
    return model


class Text:
    """What a model writes behind a prompt; one that translates has a source, too."""

    def __init__(self, name, kind, batch):
        self.model, generator = made(name), torch.Generator().manual_seed(batch)
        self.source, self.own = {}, {0: "batch"}
        if name in ("T5", "Whisper"):
            ids = torch.randint(3, WORDS, (batch, SOURCE), generator=generator)
            sounds = torch.randn(batch, 8, 40, generator=generator, dtype=torch.float64)
            hidden = self.model.get_encoder()(ids if name == "T5" else sounds).last_hidden_state.detach()
            self.source = {"encoder_outputs": transformers.modeling_outputs.BaseModelOutput(hidden)}
        self.prompt = torch.randint(3, WORDS, (batch, 4), generator=generator)
        logits, self.cache = self.step(self.prompt, self._empty(kind))
        self.token = logits[:, -1:].argmax(-1)

    def _empty(self, kind):
        def cache(length):
            if kind == "static":
                return transformers.StaticCache(config=self.model.config, max_cache_len=length)
            return transformers.DynamicCache(config=self.model.config)

        if not self.source:
            return cache(LENGTH)
        hidden = self.source["encoder_outputs"].last_hidden_state
        return transformers.EncoderDecoderCache(cache(LENGTH), cache(hidden.shape[1]))

    def arguments(self, token, cache):
        return {"decoder_input_ids" if self.source else "input_ids": token, "cache": cache, **self.source}

    def step(self, token, cache):
        with torch.no_grad():
            outputs = self.model(**self.arguments(torch.as_tensor(token), cache))
        return outputs.logits.numpy(), outputs.cache

    def sizes(self, name, kind):
        """Return which sizes are open: those of a cache that grows, too."""
        grows = {0: "batch", 2: "length"} if kind == "growing" and name != "Mamba" else {0: "batch"}
        cache = {"self_attention_cache": grows, "cross_attention_cache": {0: "batch"}} if self.source else grows
        return {argument: {0: "batch"} for argument in self.arguments(None, None)} | {"cache": cache}


@functools.cache
def port_of(name, kind):
    example = Text(name, kind, 2)
    arguments = example.arguments(torch.as_tensor(example.token), example.cache)
    return porting.trace(example.model, keywords=arguments, dynamic_shapes=example.sizes(name, kind))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_decoder(name, kind, backend):
    port, text = port_of(name, kind), Text(name, kind, 3)  # not the batch that it was traced with
    grows = kind == "growing" and name != "Mamba"
    count = 8 if grows and backend in ("jax", "tensorflow") else TOKENS  # each length is compiled anew
    cache = arrays(_objects.open_objects(text.cache))
    source = arrays({key: dict(outputs) for key, outputs in text.source.items()})
    expected = written(text.step, text.token, text.cache, count)

    step = ported(port, not grows and backend != "torch", lambda *inputs: text.arguments(*inputs) | source)
    check_same(written(step, text.token, cache, count), expected, MODELS[name][3])


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "Mamba"])
def test_what_generate_writes(name):
    text = Text(name, "growing", 3)
    tokens, _ = written(text.step, text.token, text.cache, TOKENS)
    ids = text.model.generate(text.prompt, max_new_tokens=TOKENS + 1, do_sample=False)
    np.testing.assert_array_equal(ids[:, -TOKENS:], tokens)


def test_a_sliding_window_is_refused():
    """Its cache counts in Python, and forgets what is too old by that count."""
    options = {**SIZES, **LLAMA, "intermediate_size": 64, "head_dim": 8, "sliding_window": 8}
    model = transformers.MistralForCausalLM(transformers.MistralConfig(**options)).eval()
    with torch.no_grad():
        cache = model(torch.ones((2, 4), dtype=torch.int64)).cache
    with pytest.raises(errors.TranslationError, match="cumulative_length from 4 to 5, which is no tensor"):
        porting.trace(model, torch.ones((2, 1), dtype=torch.int64), keywords={"cache": cache})
