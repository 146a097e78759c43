# docker build -t steelyard . && docker run --rm -v "$PWD:/data" steelyard run answers.jsonl -p atomic
#
# The commands of both stages are run without Docker by `make release-check`.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src ./src
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /dist .

FROM python:3.13-slim
COPY --from=build /dist /dist
RUN python -m pip install --no-cache-dir /dist/*.whl && rm -rf /dist
RUN useradd --create-home steelyard && mkdir /data && chown steelyard /data
USER steelyard
WORKDIR /data
ENV PYTHONUTF8=1
ENTRYPOINT ["steelyard"]
CMD ["--help"]
