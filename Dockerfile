# One image for both commands: farhand (control) and farhand-agent.
FROM node:20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm install --no-save --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY proto proto
COPY agent agent
COPY control control
RUN npm run build && npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:20-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production FARHAND_HOME=/var/lib/farhand
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
# The state belongs to the user that the commands run as; a new volume takes this over.
RUN ln -s /app/dist/control/cli/main.js /usr/local/bin/farhand \
  && ln -s /app/dist/agent/main.js /usr/local/bin/farhand-agent \
  && install -d -o node -g node -m 0700 /var/lib/farhand
USER node
WORKDIR /home/node
CMD ["farhand", "--help"]
